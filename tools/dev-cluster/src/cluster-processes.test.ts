import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { haveEnded, identify, processesOf, shimsOf, signalAll, startedBySupervisor } from "./cluster-processes.ts";
import { startTimeOf } from "./process-identity.ts";

/** A shell that has printed a line; killed after the test. */
async function started(t: TestContext, script: string, value?: string, more: { argv0?: string; args?: string[] } = {}) {
  const child = spawn("sh", ["-c", script, ...(more.args ?? [])], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
    env: { ...process.env, ...(value !== undefined && { COX_PROCESS: value }) },
    ...(more.argv0 !== undefined && { argv0: more.argv0 }),
  });
  t.after(() => {
    child.stdin.end();
    try {
      process.kill(-child.pid!, "SIGKILL"); // what it has started holds its output open
    } catch {
      // all have ended
    }
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer]; // cast: a pipe emits buffers
  return { child, pid: child.pid as number, line: line.toString().trim() };
}

const endOf = (child: ChildProcess): Promise<unknown> => once(child, "exit");

test("a cluster's processes are found by their environment, with those that they started, and no other cluster's", async (t) => {
  // `timeout` leads a group of its own, but no session. The last of the processes prints its id, so that all of them exist.
  const script = "timeout 700 sh -c 'echo $$; exec sleep 600' & wait";
  const { pid, line } = await started(t, script, "aaaaaa/kubelet");
  await started(t, "sleep 600 & echo; wait", "aaaaaab/kubelet");
  const found = processesOf("aaaaaa");
  assert.ok(found.length >= 3 && found.every(({ name }) => name === "kubelet"));
  for (const own of [pid, Number(line)])
    assert.ok(
      found.some((one) => one.pid === own),
      String(own),
    );
  assert.deepEqual(
    startedBySupervisor("aaaaaa").map((one) => one.pid),
    [pid],
  );
  signalAll(found, "SIGKILL");
  assert.ok(await haveEnded(found, 5_000));
  assert.deepEqual(processesOf("aaaaaa"), []);
});

test("the process itself is none of the cluster's that it ends", async (t) => {
  const module = new URL("./cluster-processes.ts", import.meta.url).href;
  const code = `import { processesOf } from ${JSON.stringify(module)}; console.log(JSON.stringify(processesOf("bbbbbb"))); process.exit();`;
  const script = `exec "$0" -C cox-source --input-type=module -e '${code}'`;
  const { line } = await started(t, script, "bbbbbb/cox", { args: [process.execPath] });
  assert.equal(line, "[]");
});

test("the shims of a containerd are found by its socket", async (t) => {
  const shim = (socket: string) =>
    started(t, "echo; read x", undefined, { argv0: "/usr/bin/containerd-shim-runc-v2", args: ["-address", socket] });
  const { pid } = await shim("/run/cox-1/containerd.sock");
  await shim("/run/cox-12/containerd.sock");
  await started(t, "echo; read x", undefined, { args: ["/run/cox-1/containerd.sock"] });
  assert.deepEqual(
    shimsOf("/run/cox-1/containerd.sock").map((one) => [one.pid, one.name]),
    [[pid, "containerd-shim"]],
  );
});

test("a signal goes to what still is the same process", async (t) => {
  const { child, pid } = await started(t, "echo; read x; exit 7");
  const [found] = identify(pid);
  assert.equal(found?.name, readFileSync(`/proc/${pid}/comm`, "utf8").trim());
  assert.equal(identify(pid, "kubelet")[0]?.name, "kubelet");
  signalAll([{ ...found!, startTime: "1" }], "SIGKILL");
  const end = endOf(child);
  child.stdin.write("\n");
  assert.deepEqual(await end, [7, null]);
  signalAll([found!], "SIGKILL"); // it has ended, which is no error
  assert.deepEqual(identify(pid), []);
});

test("waiting for several processes ends with the last one, and says when one goes on", async (t) => {
  const [one, two] = [await started(t, "echo; read x"), await started(t, "echo; read x")];
  const both = [...identify(one.pid), ...identify(two.pid)];
  const end = endOf(one.child);
  one.child.stdin.end();
  await end;
  assert.equal(await haveEnded(both, 0), false);
  const ended = haveEnded(both, 5_000);
  two.child.stdin.end();
  assert.equal(await ended, true);
});

test("a process that nobody has waited for yet has ended; one with a strange name is identified", async (t) => {
  // sh ends below sleep, which waits for no process.
  const { child, pid: parent, line } = await started(t, "exec 3<&0; sh -c 'read x <&3' & echo $!; exec sleep 600");
  while (readFileSync(`/proc/${parent}/comm`, "utf8") !== "sleep\n") await new Promise(setImmediate);
  child.stdin.write("\n");
  while (!/\) Z /.test(readFileSync(`/proc/${line}/stat`, "utf8"))) await new Promise(setImmediate);
  assert.equal(startTimeOf(Number(line)), undefined);
  const code = 'require("fs").writeFileSync("/proc/self/comm", "a) R (b"); console.log(); process.stdin.resume()';
  const { pid } = await started(t, `exec "$0" -e '${code}'`, undefined, { args: [process.execPath] });
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
  assert.equal(identify(pid)[0]?.startTime, fields[19]);
  assert.match(startTimeOf(pid) ?? "", /^\d{2,}$/);
  const nameless = await started(t, `exec "$0" -e '${code.replace("a) R (b", "\\n")}'`, undefined, { args: [process.execPath] });
  assert.equal(identify(nameless.pid)[0]?.name, "unknown");
});
