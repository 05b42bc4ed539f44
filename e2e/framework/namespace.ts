import type { TestContext } from "node:test";
import { kubectl } from "./kubectl.ts";

let count = 0;

/** A namespace of the test's own, removed when the test ends. @returns its name. */
export async function newNamespace(t: TestContext, purpose: string): Promise<string> {
  const name = `e2e-${purpose}-${process.pid.toString(36)}${(count++).toString(36)}`;
  await kubectl("create", "namespace", name);
  t.after(() => kubectl("delete", "namespace", name, "--wait=false"));
  return name;
}
