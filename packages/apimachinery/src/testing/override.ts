/** `target` with some members replaced. The other methods run on `target` itself, which private fields require. */
export function override<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name) as unknown;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
