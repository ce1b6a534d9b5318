// oidc-provider's own adapter in memory, with room for a benchmark.

import MemoryAdapter from 'oidc-provider/lib/adapters/memory_adapter.js';
import LRU from 'oidc-provider/lib/helpers/lru.js';

/** Return the factory that the provider's setting `adapter` takes. */
export function memoryAdapter() {
  const store = new LRU({ maxSize: 2_000_000 }); // Its own 1,000 entries would forget what is being polled.
  return (model) => new MemoryAdapter(model, store);
}
