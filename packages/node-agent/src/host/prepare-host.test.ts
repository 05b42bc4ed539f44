import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AgentConfig } from "../agent-config.ts";
import { moveToCgroup, prepareHost } from "./prepare-host.ts";

test("the agent moves into the cgroup of --kubelet-cgroups, in every controller", async (t) => {
  const mountPoint = await mkdtemp(join(tmpdir(), "cox-own-cgroup-"));
  t.after(() => rm(mountPoint, { recursive: true, force: true }));
  for (const controller of ["cpu", "memory"]) {
    await mkdir(join(mountPoint, controller));
    await writeFile(join(mountPoint, controller, "cgroup.procs"), "");
  }
  await moveToCgroup("/system/kubelet", 4711, discardLogger, mountPoint);
  for (const controller of ["cpu", "memory"]) {
    assert.equal(await readFile(join(mountPoint, controller, "system/kubelet/cgroup.procs"), "utf8"), "4711");
  }
});

const kernel = {
  ...{ "vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1 },
  ...{ "kernel/keys/root_maxkeys": 1_000_000, "kernel/keys/root_maxbytes": 25_000_000 },
};

/**
 * Prepares a host with these kernel settings, whose programs `iptables`, `ip6tables` and `prlimit` only note their arguments in the
 * file `ran`, and whose lock is lost soon.
 */
async function bench(t: TestContext, settings: Readonly<Record<string, number>> = kernel) {
  const dir = await mkdtemp(join(tmpdir(), "cox-prepare-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const kernelDir = join(dir, "sys");
  const cgroupDir = join(dir, "cgroup");
  await mkdir(join(cgroupDir, "memory"), { recursive: true });
  await writeFile(join(cgroupDir, "memory", "cgroup.procs"), "");
  for (const [name, value] of Object.entries(settings)) {
    await mkdir(dirname(join(kernelDir, name)), { recursive: true });
    await writeFile(join(kernelDir, name), `${value}\n`);
  }
  await writeFile(join(dir, "flock"), "#!/bin/sh\necho; sleep 0.1\n", { mode: 0o755 });
  for (const program of ["iptables", "ip6tables", "prlimit"])
    await writeFile(join(dir, program), `#!/bin/sh\necho ${program} "$@" >> ${dir}/ran\n`, { mode: 0o755 });
  const { PATH } = process.env;
  process.env.PATH = `${dir}:${PATH}`;
  t.after(() => {
    process.env.PATH = PATH;
  });
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  const stop = new AbortController();
  t.after(() => stop.abort());
  const clock = newFakeClock();
  const config = {
    lockFile: "",
    exitOnLockContention: false,
    oomScoreAdj: Number(await readFile("/proc/self/oom_score_adj", "utf8")),
    maxOpenFiles: 123,
    protectKernelDefaults: false,
    systemCgroups: "",
    kubeletCgroups: "",
    makeIptablesUtilChains: false,
    iptablesMasqueradeBit: 14,
    iptablesDropBit: 15,
  };
  const prepare = (more: Partial<AgentConfig> = {}) =>
    prepareHost({ ...config, ...more } as AgentConfig, { clock, log, signal: stop.signal, kernelDir, cgroupDir });
  const ran = () => readFile(join(dir, "ran"), "utf8").catch(() => "");
  /** The processes of a cgroup, also to be set; undefined while it is not there. */
  const members = (cgroup: string, pids?: string): Promise<string | undefined> => {
    const path = join(cgroupDir, "memory", cgroup, "cgroup.procs");
    return (pids === undefined ? readFile(path, "utf8") : writeFile(path, pids).then(() => pids)).catch(() => undefined);
  };
  return { dir, kernelDir, clock, prepare, ran, warnings, members, stop };
}

test("the agent gets its limit of open files, and starts though a limit cannot be set", async (t) => {
  const { clock, prepare, ran, warnings } = await bench(t);
  await prepare();
  assert.equal(await ran(), `prlimit --pid ${process.pid} --nofile=123:123\n`, "and no iptables unless asked for");
  await settle();
  assert.deepEqual([warnings, clock.waiting], [[], 0], "and nothing is repeated");
  await prepare({ oomScoreAdj: 5_000 });
  assert.deepEqual(warnings, ["Failed to ApplyOOMScoreAdj"]);
});

test("the marks of packets are the configured bits", async (t) => {
  const { clock, prepare, ran } = await bench(t);
  await prepare({ makeIptablesUtilChains: true, iptablesMasqueradeBit: 4, iptablesDropBit: 5 });
  await waitFor(() => clock.waiting > 0, { what: "the chains" });
  const chains = (await ran()).split("\n").filter((line) => line.startsWith("iptables"));
  assert.ok(
    chains.some((line) => line.includes("KUBE-MARK-MASQ -j MARK --or-mark 0x00000010")),
    chains.join("\n"),
  );
  assert.ok(chains.some((line) => line.includes("KUBE-MARK-DROP -j MARK --or-mark 0x00000020")));
});

test("the root cgroup is not one for system processes", async (t) => {
  const { prepare } = await bench(t);
  await assert.rejects(
    prepare({ systemCgroups: "/" }),
    (err) => err instanceof ConfigError && err.message === 'system container cannot be root ("/")',
  );
});

test("losing the lock file ends the agent only with --exit-on-lock-contention", async (t) => {
  const { dir, clock, prepare } = await bench(t);
  const lockFile = join(dir, "lock");
  const over: boolean[] = [];
  for (const exitOnLockContention of [false, true]) {
    const { contended } = await prepare({ lockFile, exitOnLockContention });
    void contended.then(() => over.push(exitOnLockContention));
  }
  await waitFor(async () => {
    await clock.advance(1_000);
    return over.length > 0;
  });
  assert.deepEqual(over, [true]);
});

test("a kernel that is set otherwise is changed, or refused with --protect-kernel-defaults", async (t) => {
  const { kernelDir, prepare } = await bench(t, { ...kernel, "kernel/panic": 0 });
  const panic = () => readFile(join(kernelDir, "kernel/panic"), "utf8");
  await assert.rejects(
    prepare({ protectKernelDefaults: true }),
    (err) =>
      err instanceof ConfigError && /^failed to start ContainerManager: invalid kernel flag: kernel\/panic/.test(err.message),
  );
  assert.equal(await panic(), "0\n");
  await prepare();
  assert.equal(await panic(), "10");
});

test("the agent is moved into its cgroup every five minutes, the machine's processes into theirs every minute, until it ends", async (t) => {
  const { clock, prepare, members, warnings, stop } = await bench(t);
  await prepare({ kubeletCgroups: "/kube", systemCgroups: "/system" });
  const own = String(process.pid);
  await waitFor(async () => (await members("kube")) === own && clock.waiting === 2, { what: "the agent to be moved" });
  assert.equal(await members("system"), undefined, "there is none to move");
  await members("kube", "0");
  await members("", own);
  await clock.advance(59_999);
  assert.deepEqual([await members("system"), clock.waiting], [undefined, 2]);
  await clock.advance(1);
  // The folders of this test, unlike the kernel's, keep the process in the root cgroup.
  await waitFor(() => warnings.length === 1 && clock.waiting === 2, { what: "the processes to be moved" });
  assert.deepEqual([await members("system"), warnings], [own, ["Failed to ensure that processes are in their cgroup"]]);
  await members("", "");
  await clock.advance(4 * 60_000 - 1);
  assert.equal(await members("kube"), "0");
  await clock.advance(1);
  await waitFor(async () => (await members("kube")) === own, { what: "the agent to be moved again" });
  stop.abort();
  await waitFor(() => clock.waiting === 0, { what: "both to end" });
});
