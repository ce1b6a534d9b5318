-- A plan counts each user once a day. Erasing a deleted project takes its users out of `daily_users`; what they have
-- used of the plan goes to `removed_usage` in the same statement, whose rows are held by those of `daily_users`.

CREATE OR REPLACE FUNCTION erase_people(of_developer TEXT, of_project TEXT, count_limit BIGINT) RETURNS INTEGER
LANGUAGE plpgsql AS $$
DECLARE
  people TEXT[];
  days INTEGER[];
  erased INTEGER := 0;
  last_day INTEGER;
BEGIN
  SELECT array_agg(f.messenger_id), array_agg(f.day) INTO people, days FROM (
    SELECT u.messenger_id, u.day FROM user_days u WHERE u.project_id = of_project LIMIT count_limit) AS f;
  IF people IS NULL THEN
    RETURN 0;
  END IF;
  PERFORM lock_people(array_fill(of_developer, ARRAY[cardinality(people)]), people);
  PERFORM c.day FROM daily_users c WHERE c.developer_id = of_developer ORDER BY c.day FOR UPDATE;
  FOR n IN 1 .. cardinality(people) LOOP
    DELETE FROM user_days u WHERE u.developer_id = of_developer AND u.messenger_id = people[n] AND u.day = days[n]
      AND u.project_id = of_project;
    IF NOT FOUND THEN -- Another node has erased it.
      CONTINUE;
    END IF;
    erased := erased + 1;
    IF EXISTS (
      SELECT FROM user_days u
      WHERE u.developer_id = of_developer AND u.messenger_id = people[n] AND u.day = days[n]
    ) THEN
      CONTINUE;
    END IF;
    SELECT MAX(u.day) INTO last_day FROM user_days u
    WHERE u.developer_id = of_developer AND u.messenger_id = people[n];
    UPDATE daily_users c SET unique_users = c.unique_users - 1,
      latest_users = c.latest_users - CASE WHEN last_day > days[n] THEN 0 ELSE 1 END
    WHERE c.developer_id = of_developer AND c.day = days[n];
    INSERT INTO removed_usage AS r (developer_id, day, confirmed) VALUES (of_developer, days[n], 1)
    ON CONFLICT (developer_id, day) DO UPDATE SET confirmed = r.confirmed + 1;
    UPDATE daily_users c SET latest_users = c.latest_users + 1
    WHERE c.developer_id = of_developer AND c.day = last_day AND last_day < days[n];
  END LOOP;
  RETURN erased;
END $$;
