import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunProgram } from "../host/run-program.ts";
import { removeLeftRules } from "./left-rules.ts";

/** A machine with these chains in the nat table. */
function aMachine(...chains: string[]) {
  const restored: string[] = [];
  const run: RunProgram = async (command, args, input = "") => {
    if (command.endsWith("-restore")) restored.push(`${command} ${input}`);
    const isNat = command === "iptables-save" && !args.includes("filter");
    return isNat ? ["*nat", ...chains.map((chain) => `:${chain} - [0:0]`), "COMMIT", ""].join("\n") : "";
  };
  return { run, restored };
}

test("chains of Services that an earlier process has left are removed, those of other parts and programs stay", async () => {
  const { run, restored } = aMachine("COX-SERVICES", "COX-NET-MASQ", "COX-LB-x", "KUBE-SERVICES");
  assert.equal(await removeLeftRules("COX-", run), true);
  assert.deepEqual(restored, ["iptables-restore *nat\n:COX-SERVICES - [0:0]\n-X COX-SERVICES\nCOMMIT\n"]);
});

test("without such chains nothing is changed", async () => {
  const { run, restored } = aMachine("COX-NET-MASQ", "COX-LB-x", "KUBE-SERVICES");
  assert.equal(await removeLeftRules("COX-", run), false);
  assert.deepEqual(restored, []);
});
