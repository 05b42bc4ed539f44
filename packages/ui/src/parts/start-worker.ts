/** The only place that makes a script address: the page's policy allows no other ("trusted-types worker"). */
interface Policies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

export function startWorker(): Worker {
  const { trustedTypes } = globalThis as { trustedTypes?: Policies };
  policy ??= trustedTypes?.createPolicy("worker", { createScriptURL: () => file });
  return new Worker(policy?.createScriptURL(file) ?? file, { type: "module" });
}

const file = "worker.js";
/** A policy of this name can be made once. */
let policy: ReturnType<Policies["createPolicy"]> | undefined;
