/**
 * What the examples with a package.json of their own use of packages that only their own projects install. It lets the checks of this repository read
 * them; tools/publish/src/examples.test.ts checks them against the packages themselves.
 */
declare module "vitest" {
  type Body = () => Promise<void> | void;
  export function test(name: string, body: Body): void;
  export function beforeAll(body: Body): void;
  export function afterAll(body: Body): void;
  export function onTestFinished(body: Body): void;
  interface Matchers {
    readonly not: Matchers;
    readonly rejects: { toThrow(expected: RegExp): Promise<void> };
    toBe(expected: unknown): void;
    toContain(expected: unknown): void;
    toMatch(expected: RegExp): void;
  }
  export function expect(actual: unknown): Matchers;
}

declare module "vitest/config" {
  export function defineConfig(config: { test: { testTimeout?: number; hookTimeout?: number } }): object;
}
