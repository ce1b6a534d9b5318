import { taproofSignOut } from "taproof/next";

import { endSession } from "../../../session";

export const { POST } = taproofSignOut({ endSession });
