import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Namespace, newNamespace } from "@coxswain/cluster-services/testing/namespaces";

const main = join(import.meta.dirname, "../../packages/cluster-services/src/main.ts");
const apiPort = 6443;

/** A program of the machine whose call ends the process that makes it: which one from now on, before or after the program has run. */
export interface Moment {
  readonly program: "iptables-restore" | "ip";
  readonly call: number;
  readonly when: "before" | "after";
}

/** A network namespace in which coxswain-services runs, with separate folders. */
export class KillableMachine {
  readonly namespace: Namespace;
  readonly folder: string;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  #output = "";

  private constructor(namespace: Namespace, folder: string, flags: readonly string[]) {
    this.namespace = namespace;
    this.folder = folder;
    this.#flags = flags;
  }

  static async make(t: TestContext, folder: string, apiSocket: string, flags: readonly string[]): Promise<KillableMachine> {
    const namespace = await newNamespace(t);
    await namespace.request({ op: "relay", port: apiPort, socket: apiSocket });
    mkdirSync(join(folder, "bin"), { recursive: true });
    writeFileSync(join(folder, "resolv.conf"), "nameserver 127.0.0.53\n");
    for (const program of ["iptables-restore", "ip"]) {
      const real = execFileSync("sh", ["-c", `command -v ${program}`], {
        encoding: "utf8",
        env: { PATH: "/usr/sbin:/sbin:/usr/bin:/bin" },
      });
      const file = join(folder, "bin", program);
      writeFileSync(file, wrapper(folder, program, real.trim()));
      chmodSync(file, 0o755);
    }
    const machine = new KillableMachine(namespace, folder, flags);
    t.after(() => machine.kill());
    return machine;
  }

  get volumes(): string {
    return join(this.folder, "volumes");
  }

  /** What the processes have logged. */
  get output(): string {
    return this.#output;
  }

  start(own: readonly string[] = this.#flags): void {
    const flags = [
      `--kubeconfig=${join(this.folder, "..", "kubeconfig")}`,
      "--node-name=n1",
      "--cluster-cidr=10.77.0.0/16",
      `--cni-conf-dir=${join(this.folder, "cni")}`,
      `--cni-data-dir=${join(this.folder, "addresses")}`,
      `--local-volumes-dir=${this.volumes}`,
      `--resolv-conf=${join(this.folder, "resolv.conf")}`,
      ...["--secure-port=0", "--healthz-bind-address=", "--metrics-bind-address="],
      ...own,
    ];
    // What it marks in /run is its own.
    const inNamespaces = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh"];
    const child = spawn(
      "nsenter",
      [`--net=/proc/${this.namespace.pid}/ns/net`, ...inNamespaces, process.execPath, "-C", "cox-source", main, ...flags],
      { env: { ...process.env, PATH: `${join(this.folder, "bin")}:${process.env["PATH"]}` }, stdio: ["ignore", "pipe", "pipe"] },
    );
    const noted = (text: Buffer): void => {
      this.#output = (this.#output + text.toString()).slice(-20_000);
    };
    child.stdout.on("data", noted);
    child.stderr.on("data", noted);
    this.#child = child;
  }

  /** The process is killed at that moment. */
  arm({ program, call, when }: Moment): void {
    rmSync(join(this.folder, "calls"), { force: true });
    writeFileSync(join(this.folder, "plan"), `${program} ${call} ${when}\n`);
  }

  get hasEnded(): boolean {
    return this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async kill(): Promise<void> {
    rmSync(join(this.folder, "plan"), { force: true });
    if (this.#child === undefined || this.hasEnded) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }

  /** Ends it as a service manager does. */
  async stop(): Promise<void> {
    if (this.#child === undefined || this.hasEnded) return;
    this.#child.kill("SIGTERM");
    await once(this.#child, "exit");
  }

  volumeFolders(): string[] {
    return existsSync(this.volumes) ? readdirSync(this.volumes).sort() : [];
  }
}

/** Runs the real program, and kills its parent at the call that the plan names. */
const wrapper = (folder: string, program: string, real: string): string => `#!/bin/sh
real=${real}
[ -f ${folder}/plan ] && read -r what call when <${folder}/plan || exec "$real" "$@"
[ "$what" = ${program} ] || exec "$real" "$@"
echo >>${folder}/calls
[ "$(wc -l <${folder}/calls)" -eq "$call" ] || exec "$real" "$@"
rm -f ${folder}/plan
if [ "$when" = after ]; then "$real" "$@"; fi
kill -KILL $PPID
`;

/** A Unix socket that leads to a port of this machine. */
export async function openRelay(t: TestContext, path: string, url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.on("error", () => upstream.destroy()).on("close", () => upstream.destroy());
    upstream.on("error", () => client.destroy()).on("close", () => client.destroy());
    client.pipe(upstream).pipe(client);
  });
  server.listen(path);
  await once(server, "listening");
  t.after(() => server.close());
}

/** Of the kubeconfig below. */
export const userOfNode = "system:coxswain-services:n1";

/** The kubeconfig of a node's services, which reach the API server through the relay, with their own rights only. */
export const kubeconfigOfNode = (administrators: string): string =>
  kubeconfigOf(administrators, userOfNode, "system:coxswain-services");

/** The same of another user. */
export function kubeconfigOf(administrators: string, user: string, ...groups: string[]): string {
  const config = JSON.parse(administrators);
  config.clusters[0].cluster.server = `https://127.0.0.1:${apiPort}`;
  Object.assign(config.users[0].user, { as: user, ...(groups.length > 0 && { "as-groups": groups }) });
  return JSON.stringify(config);
}
