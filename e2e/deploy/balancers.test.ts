import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { hasExitCode, isMissingFile, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { admin, MachineCluster, minutes } from "./cluster.ts";
import { readGuide, runBlock } from "./guide.ts";
import { whyNoMachine } from "./machine.ts";

const skip = whyNoMachine() ?? (process.env["COX_TEST_LONG"] === undefined ? "a long form: COX_TEST_LONG" : undefined);
const guide = readGuide("one-address.md");
const servers = ["cp1", "cp2", "cp3"];
const address = "10.111.0.30";

/** A cluster and a client that asks for `/readyz` of whatever stands in front of its API servers, by a new connection each time. */
class Fronted {
  readonly cluster: MachineCluster;
  readonly #client: string;

  /** @param client the machine of the client, which has a node's `ca.crt` */
  constructor(cluster: MachineCluster, client: string) {
    this.cluster = cluster;
    this.#client = client;
  }

  /** Commands of the guide. @param from of the section's blocks */
  async follow(section: string, from = 0, to?: number): Promise<void> {
    const blocks = guide.get(section)?.slice(from, to) ?? [];
    assert.ok(blocks.length > 0, `no section ${section}`);
    for (const block of blocks) await runBlock(this.cluster, block);
  }

  async ask(host: string): Promise<void> {
    const script = `while :; do
      code=$(curl --silent --cacert /root/ca.crt --max-time 5 --output /dev/null --write-out '%{http_code}' https://${host}:6443/readyz) || true
      read now rest </proc/uptime; echo "$now $code" >>/root/answers; sleep 0.1
    done`;
    await this.#run("rm", "-f", "/root/answers");
    await this.#run("systemd-run", "--unit=asking", "--property=KillMode=control-group", "sh", "-c", script);
    await this.#whenWell();
  }

  stop(): Promise<unknown> {
    return this.#run("systemctl", "stop", "asking");
  }

  /** Applies a fault to an API server and reverts it. @returns failed requests, and the longest time between two successful ones */
  async fault(victim: string, begin: string, end: string): Promise<{ failed: number; longestMs: number }> {
    const first = this.#answers().length;
    await this.cluster.machine(victim).shell(begin);
    try {
      await this.#whenWell();
    } finally {
      await this.cluster.machine(victim).shell(end);
    }
    const seen = this.#answers().slice(first - 1);
    const good = seen.filter(({ isGood }) => isGood).map(({ atMs }) => atMs);
    return {
      failed: seen.filter(({ isGood }) => !isGood).length,
      longestMs: Math.max(...good.slice(1).map((atMs, i) => atMs - (good[i] as number))),
    };
  }

  async whenAllReady(): Promise<void> {
    for (const name of servers)
      await waitFor(async () => (await this.cluster.kubectl(name, "get", "--raw", "/readyz")) === "ok", {
        ...{ timeoutMs: minutes(2), retry: hasExitCode, what: `the API server of ${name}` },
      });
  }

  /** Of the next requests none fails. */
  async #whenWell(): Promise<void> {
    const many = 50;
    const first = await waitFor(async () => this.#answers().length, { retry: isMissingFile });
    await waitFor(
      () => {
        const seen = this.#answers();
        return seen.length > first + many && seen.slice(-many).every(({ isGood }) => isGood);
      },
      { timeoutMs: minutes(3), what: "a ready API server behind it" },
    );
  }

  #answers(): { atMs: number; isGood: boolean }[] {
    const text = readFileSync(this.cluster.machine(this.#client).path("/root/answers"), "utf8");
    return text
      .split("\n")
      .slice(0, -1)
      .map((line) => line.split(" "))
      .map(([at, code]) => ({ atMs: Number(at) * 1000, isGood: code === "200" }));
  }

  #run(...command: [string, ...string[]]): Promise<string> {
    return this.cluster.machine(this.#client).run(...command);
  }
}

const kill = "systemctl kill --kill-who=main --signal=KILL kube-apiserver; systemctl stop kube-apiserver";
const start = "systemctl start --no-block kube-apiserver";
const pause = "systemctl kill --kill-who=main --signal=STOP kube-apiserver";
const resume = "systemctl kill --kill-who=main --signal=CONT kube-apiserver";

async function survives(
  t: TestContext,
  fronted: Fronted,
  what: string,
  find: () => Promise<string>,
  pauses = true,
): Promise<void> {
  for (const [name, begin, end] of [
    ["killed", kill, start],
    ["paused", pause, resume],
  ] as const) {
    if (name === "paused" && !pauses) continue;
    const victim = await find();
    const { failed, longestMs } = await fronted.fault(victim, begin, end);
    t.diagnostic(
      `${what}, the API server of ${victim} ${name}: ${failed} requests failed, ${(longestMs / 1000).toFixed(1)} s without an answer`,
    );
    await fronted.whenAllReady();
  }
}

/** The machine that has the address. */
const holder = (cluster: MachineCluster): Promise<string> =>
  waitFor(
    async () => {
      const shown = await Promise.all(
        servers.map(async (name) => [name, await cluster.machine(name).run("ip", "address")] as const),
      );
      return shown.find(([, text]) => text.includes(`inet ${address}/`))?.[0];
    },
    { timeoutMs: minutes(1), what: `a machine with the address ${address}` },
  );

describe("a name in front of the API servers", { skip }, () => {
  let cluster: MachineCluster;
  let fronted: Fronted;
  let packages = "";

  /** As an administrator's DNS. */
  const name = async (ip: string): Promise<void> => {
    for (const machine of [...servers, "n1"])
      await cluster.machine(machine).shell(`sed -i /api.example/d /etc/hosts; echo '${ip} api.example' >>/etc/hosts`);
  };
  const install = async (machine: string): Promise<void> => {
    cpSync(packages, cluster.machine(machine).path("/root/packages"), { recursive: true });
    await cluster
      .machine(machine)
      .shell("DEBIAN_FRONTEND=noninteractive dpkg --install /root/packages/*.deb 2>&1 || dpkg --configure --pending");
  };
  /** By the name, from the node: a Deployment runs on it. */
  const works = async (): Promise<void> => {
    const run = (script: string) => cluster.machine("n1").shell(`export KUBECONFIG=/root/admin.conf; ${script}`);
    await waitFor(() => run("kubectl create deployment probe --image=busybox:1.35 -- sleep 3600"), {
      retry: hasExitCode,
      timeoutMs: minutes(1),
    });
    await run("kubectl wait --for=condition=Available --timeout=180s deployment/probe");
    await run("kubectl delete deployment probe");
    await cluster.whenReady("cp1", ...servers, "n1");
  };

  before(async () => {
    cluster = await MachineCluster.start();
    await cluster.boot("cp1");
    for (const machine of ["cp2", "cp3", "n1", "lb1"]) await cluster.boot(machine);
    fronted = new Fronted(cluster, "n1");
    packages = fetchPackages("haproxy", "keepalived", "dnsmasq");
    for (const machine of [...servers, "lb1"]) await install(machine);
    await cluster.machine("lb1").run("systemctl", "stop", "keepalived", "dnsmasq");
    for (const machine of servers) await cluster.machine(machine).run("systemctl", "stop", "haproxy", "dnsmasq");
  });
  after(async () => {
    await cluster?.remove();
    if (packages !== "") rmSync(packages, { recursive: true });
  });

  test("haproxy: the cluster is made behind it, and API servers are killed and paused", async (t) => {
    await fronted.follow("haproxy");
    await name(cluster.address("lb1"));
    const printed = await cluster.init("cp1", "--control-plane-endpoint=api.example:6443");
    assert.match(printed, /coxswain join api\.example:6443/);
    await cluster.joinControlPlane("cp1", "cp2", "cp3");
    await cluster.joinNodes("cp1", "n1");
    await cluster.whenReady("cp1", ...servers, "n1");
    cluster.copy(admin, "cp1", "n1", "/root/admin.conf");
    cluster.copy("/etc/kubernetes/pki/ca.crt", "cp1", "n1", "/root/ca.crt");
    await fronted.ask("api.example");
    await survives(t, fronted, "haproxy", async () => "cp2");
    await works();
  });

  test("keepalived: the address leaves the machine whose API server is killed or paused", async (t) => {
    await fronted.follow("keepalived");
    await holder(cluster);
    await name(address);
    await cluster.machine("lb1").run("systemctl", "stop", "haproxy");
    await survives(t, fronted, "keepalived", () => holder(cluster));
    await works();
  });

  test("DNS: clients go on to the addresses of those that are left", async (t) => {
    await fronted.follow("DNS");
    for (const machine of [...servers, "n1"])
      await cluster
        .machine(machine)
        .shell(`sed -i /api.example/d /etc/hosts; echo 'nameserver ${cluster.address("lb1")}' >/etc/resolv.conf`);
    for (const machine of servers) await cluster.machine(machine).run("systemctl", "stop", "keepalived");
    for (const victim of servers) await survives(t, fronted, "DNS", async () => victim, false);
    await works();
  });
});

test("an address by coxswain-services leaves the machine whose API server is killed or paused", { skip }, async (t) => {
  const cluster = await MachineCluster.start();
  t.after(() => cluster.remove());
  await cluster.boot("cp1");
  for (const machine of ["cp2", "cp3", "n1", "lb1"]) await cluster.boot(machine);
  // Outside of the cluster.
  const fronted = new Fronted(cluster, "lb1");
  const section = "An address by coxswain-services";
  await fronted.follow(section, 0, 1);
  await cluster.joinControlPlane("cp1", "cp2", "cp3");
  await cluster.joinNodes("cp1", "n1");
  await cluster.whenReady("cp1", ...servers, "n1");
  await fronted.follow(section, 1);
  cluster.copy("/etc/kubernetes/pki/ca.crt", "cp1", "lb1", "/root/ca.crt");
  await fronted.ask(address);
  await survives(t, fronted, "coxswain-services", () => holder(cluster));
});

/** Debian's packages and those that they need which this machine does not have. @returns a folder */
function fetchPackages(...names: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-packages-"));
  const run = (...args: string[]): string =>
    execFileSync("apt-get", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const needed = (): string[] =>
    [...run("install", "--simulate", "--no-install-recommends", ...names).matchAll(/^Inst (\S+)/gm)].map(([, name = ""]) => name);
  const download = (): unknown => run("download", "-q", ...needed());
  try {
    download();
  } catch {
    run("update", "-q"); // package lists may be missing or outdated
    download();
  }
  assert.ok(globSync("*.deb", { cwd: folder }).length > 0);
  return folder;
}
