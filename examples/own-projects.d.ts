/**
 * What the examples with a separate package.json use of packages that only their own projects install. It lets the checks of this repository read
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

declare module "pepr" {
  interface Deployment {
    readonly spec?: { readonly template: { readonly spec?: { readonly containers: readonly { readonly image?: string }[] } } };
  }
  interface Change {
    readonly Request: { readonly userInfo: { readonly username?: string } };
    HasLabel(name: string): boolean;
    SetLabel(name: string, value: string): unknown;
  }
  interface Question {
    readonly Raw: Deployment;
    Approve(): object;
    Deny(message: string): object;
  }
  interface Actions {
    IsCreatedOrUpdated(): Actions;
    Mutate(action: (object: Change) => void): Actions;
    Validate(action: (object: Question) => object): Actions;
  }
  export const a: { readonly Deployment: unknown };
  export class Capability {
    constructor(about: { name: string; description: string });
    When(kind: unknown): Actions;
  }
  export class PeprModule {
    constructor(packageJson: object, capabilities: Capability[], options: { deferStart: boolean });
    start(port: number): void;
  }
}
