import type { TestContext } from "node:test";
import { kubectl, tryKubectl } from "./kubectl.ts";

let count = 0;

/** A namespace of the test's own, removed when the test ends. @returns its name. */
export async function newNamespace(t: TestContext, purpose: string): Promise<string> {
  const name = `e2e-${purpose}-${process.pid.toString(36)}${(count++).toString(36)}`;
  await kubectl("create", "namespace", name);
  // Whatever became of the cluster: a hook that fails would keep the ones after it from running.
  t.after(() => tryKubectl(["delete", "namespace", name, "--wait=false"]));
  return name;
}
