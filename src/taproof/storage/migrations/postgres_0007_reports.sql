-- How many sessions of a day their users reported.

ALTER TABLE daily_counts ADD COLUMN reported INTEGER NOT NULL DEFAULT 0;
