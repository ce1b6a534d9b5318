import { TaproofButton } from "taproof/react";

import { SignOut } from "./sign_out";
import { currentUser } from "./session";

export default async function Page() {
  const user = await currentUser();
  return user ? (
    <main><p id="name">{user.messengerName}</p><SignOut /></main>
  ) : (
    <TaproofButton
      projectId={process.env.TAPROOF_PROJECT_ID}
      baseUrl={process.env.TAPROOF_BASE_URL}
      submitUrl="/auth/taproof"
      label="Come in"
      language="en"
    />
  );
}
