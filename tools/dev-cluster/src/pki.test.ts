import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { kubeconfigFile, withOldKubeconfig } from "./pki.ts";
import type { ProcessState } from "./supervisor-decisions.ts";
import { writeState } from "./supervisor-state.ts";

test("a process that started before its kubeconfig was written is found", (t) => {
  const state = mkdtempSync(join(tmpdir(), "cox-kubeconfigs-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  const settings = { state };
  assert.deepEqual(withOldKubeconfig(settings), [], "nothing is there");
  const at = 1_600_000_000;
  const write = (name: "controller-manager" | "kubelet" | "scheduler" | "services", seconds: number): void => {
    writeFileSync(kubeconfigFile(settings, name), "");
    utimesSync(kubeconfigFile(settings, name), seconds, seconds);
  };
  const process = (name: string, phase: ProcessState["phase"]) => ({
    [name]: { spec: { name, command: name, args: [] }, state: { phase, since: at * 1000, restarts: 0, quickEnds: 0 } },
  });
  mkdirSync(join(state, "run"));
  writeState(settings, {
    supervisor: { pid: 1, startTime: "1", since: 0, version: "" },
    processes: {
      ...process("kube-controller-manager", "running"),
      ...process("kube-scheduler", "running"),
      ...process("kubelet", "stopped"),
      ...process("coxswain-services", "running"),
    },
  });
  write("controller-manager", at - 1);
  write("scheduler", at + 1);
  write("kubelet", at + 1);
  write("services", at + 1);
  assert.deepEqual(withOldKubeconfig(settings), ["kube-scheduler", "coxswain-services"]);
});
