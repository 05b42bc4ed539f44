import type { TestContext } from "node:test";
import { kubectl, tryKubectl } from "./kubectl.ts";

let count = 0;

/** Creates a namespace for the test, deleted after it. @returns its name. */
export async function newNamespace(t: TestContext, purpose: string): Promise<string> {
  const name = `e2e-${purpose}-${process.pid.toString(36)}${(count++).toString(36)}`;
  await kubectl("create", "namespace", name);
  // tryKubectl does not throw: a failing hook would prevent later hooks from running.
  t.after(() => tryKubectl(["delete", "namespace", name, "--wait=false"]));
  return name;
}
