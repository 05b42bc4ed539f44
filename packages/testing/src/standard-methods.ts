/** Polyfills of standard methods that Node 22 and 24 lack. */
for (const { prototype } of [Map, WeakMap] as const) {
  if ("getOrInsertComputed" in prototype) continue;
  Object.defineProperty(prototype, "getOrInsertComputed", {
    configurable: true,
    writable: true,
    value: function getOrInsertComputed(this: Map<unknown, unknown>, key: unknown, make: (key: unknown) => unknown): unknown {
      if (this.has(key)) return this.get(key);
      const value = make(key);
      this.set(key, value);
      return value;
    },
  });
}
