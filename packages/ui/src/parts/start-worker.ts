/** The only place that creates a script URL: the page's content security policy allows no other ("trusted-types worker"). */
interface Policies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

export function startWorker(): Worker {
  const { trustedTypes } = globalThis as { trustedTypes?: Policies }; // cast: TypeScript's DOM library does not have it
  policy ??= trustedTypes?.createPolicy("worker", { createScriptURL: () => file });
  return new Worker(policy?.createScriptURL(file) ?? file, { type: "module" });
}

const file = "worker.js";
/** A policy of one name can be created only once. */
let policy: ReturnType<Policies["createPolicy"]> | undefined;
