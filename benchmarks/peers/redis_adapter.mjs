// oidc-provider's adapter interface on Redis, one transaction a write. Redis keeps what it answers (appendfsync always).
// It does what the interface asks for and no more, as sqlite_adapter.mjs does. Keys expire with their entries.

import { Redis } from 'ioredis';

const grantKey = (id) => `grant:${id}`;
const userCodeKey = (code) => `user_code:${code}`;
const uidKey = (uid) => `uid:${uid}`;

async function done(transaction) {
  const failed = (await transaction.exec()).find(([error]) => error);
  if (failed) throw failed[0];
}

/** Connect to the socket and return the factory that the provider's setting `adapter` takes. */
export function redisAdapter(socket) {
  const redis = new Redis(socket);

  return (model) => {
    const entryKey = (id) => `${model}:${id}`;
    async function find(id) {
      if (!id) return undefined;
      const [payload, consumed] = await redis.hmget(entryKey(id), 'payload', 'consumed');
      if (payload === null) return undefined;
      return consumed === null ? JSON.parse(payload) : { ...JSON.parse(payload), consumed: Number(consumed) };
    }
    return {
      async upsert(id, payload, expiresIn) {
        const key = entryKey(id);
        const writes = redis.multi().hset(key, 'payload', JSON.stringify(payload));
        if (expiresIn) writes.expire(key, expiresIn);
        for (const [value, keyOf] of [[payload.userCode, userCodeKey], [payload.uid, uidKey]]) {
          if (value) writes.set(keyOf(value), id, ...(expiresIn ? ['EX', expiresIn] : []));
        }
        if (payload.grantId) {
          const grant = grantKey(payload.grantId);
          writes.sadd(grant, key);
          // Without an expiry it gets one, and with one it gets the later of both.
          if (expiresIn) writes.expire(grant, expiresIn, 'NX').expire(grant, expiresIn, 'GT');
        }
        await done(writes);
      },
      find,
      findByUserCode: async (userCode) => find(await redis.get(userCodeKey(userCode))),
      findByUid: async (uid) => find(await redis.get(uidKey(uid))),
      async consume(id) { await redis.hset(entryKey(id), 'consumed', Math.floor(Date.now() / 1000)); },
      async destroy(id) { await redis.del(entryKey(id)); },
      async revokeByGrantId(grantId) {
        const grant = grantKey(grantId);
        await redis.del(grant, ...await redis.smembers(grant));
      },
    };
  };
}
