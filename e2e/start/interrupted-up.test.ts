import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { newOwnCluster, type OwnCluster, removeOwnCluster } from "../framework/own-cluster.ts";

let cluster: OwnCluster;

before(async () => {
  cluster = await newOwnCluster(mkdtempSync(join(tmpdir(), "cox-interrupted-")));
});
after(() => removeOwnCluster(cluster));

/** Rounds of `up`, each interrupted at a different point. */
const rounds = process.env["COX_TEST_LONG"] === undefined ? 6 : 60;
const steps = ["", "started the supervisor", "started etcd", "started containerd", "started kubelet", "images are imported"];
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

test("up that is interrupted at any moment leaves nothing running", async () => {
  const { state, bridge } = cluster.settings;
  for (let round = 0; round < rounds; round++) {
    const signal = signals[round % signals.length] as NodeJS.Signals;
    const step = steps[round % steps.length] as string;
    const child = cluster.start("up");
    let output = "";
    const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
    const reached = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream?.on("data", (chunk) => {
          output += chunk;
          if (output.includes(step)) resolve();
        });
      // Within a step the exact moment is not controlled; it varies with the load of the machine.
      if (step === "") setTimeout(resolve, Math.random() * 1500);
    });
    await Promise.race([reached, ended]);
    child.kill(signal);
    const [code] = await ended;
    const status = await cluster.cox("status");
    const known = [...status.stdout.matchAll(/running, pid (\d+)/g)].map((match) => match[1]);
    assert.notEqual(code, 0, `${signal} after "${step}" came too late: ${output}`);
    assert.deepEqual(known, [], `${signal} after "${step}": ${output}${status.stdout}`);
    assert.equal(existsSync(`/sys/class/net/${bridge}`), false, `its bridge is left: ${output}`);
    assert.deepEqual(processesThatName(state), [], `${signal} after "${step}": ${output}`);
  }
  const { code, stdout, stderr } = await cluster.cox("up");
  const logs = code === 0 ? "" : (await cluster.cox("logs", "--tail", "40", "etcd", "kube-apiserver")).stdout;
  assert.equal(code, 0, stdout + stderr + logs);
});

/** Command lines that contain a folder. */
function processesThatName(folder: string): string[] {
  const commands = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n");
  return commands.filter((command) => command.includes(folder));
}
