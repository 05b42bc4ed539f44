import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
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

export interface KillableMachineOptions {
  /** Of its node. Default `n1`. */
  readonly nodeName?: string;
  /** Default: a new one. */
  readonly namespace?: Namespace;
}

/** A network namespace in which coxswain-services runs, with separate folders. */
export class KillableMachine {
  readonly namespace: Namespace;
  readonly folder: string;
  readonly #nodeName: string;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  #output = "";

  private constructor(namespace: Namespace, folder: string, nodeName: string, flags: readonly string[]) {
    this.namespace = namespace;
    this.folder = folder;
    this.#nodeName = nodeName;
    this.#flags = flags;
  }

  /** @param folder one beside `kubeconfig.<node name>` */
  static async make(
    t: TestContext,
    folder: string,
    apiSocket: string,
    flags: readonly string[],
    { nodeName = "n1", namespace: given }: KillableMachineOptions = {},
  ): Promise<KillableMachine> {
    const namespace = given ?? (await newNamespace(t));
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
    const machine = new KillableMachine(namespace, folder, nodeName, flags);
    t.after(() => machine.kill());
    return machine;
  }

  get cniFolder(): string {
    return join(this.folder, "cni");
  }

  /** Of the process that runs. */
  get pid(): number {
    // nsenter and unshare become the programs that they run.
    return this.#child?.pid as number;
  }

  get volumes(): string {
    return join(this.folder, "volumes");
  }

  /** What the processes have logged. */
  get output(): string {
    return this.#output;
  }

  /** @param variables added to the environment of the process */
  start(own: readonly string[] = this.#flags, variables: Readonly<Record<string, string>> = {}): void {
    const flags = [
      `--kubeconfig=${join(this.folder, "..", `kubeconfig.${this.#nodeName}`)}`,
      `--node-name=${this.#nodeName}`,
      "--cluster-cidr=10.77.0.0/16",
      `--cni-conf-dir=${this.cniFolder}`,
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
      {
        env: { ...process.env, PATH: `${join(this.folder, "bin")}:${process.env["PATH"]}`, ...variables },
        stdio: ["ignore", "pipe", "pipe"],
      },
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

/** A Unix socket that leads to a port of this machine, unless it is cut. */
export class Relay {
  readonly #open = new Set<Socket>();
  #target: { readonly host: string; readonly port: number } | undefined;

  /** @param url where connections lead; undefined: nowhere, those that exist are broken off */
  lead(url: string | undefined): void {
    this.#target = url === undefined ? undefined : { host: new URL(url).hostname, port: Number(new URL(url).port) };
    for (const socket of this.#open) socket.destroy();
  }

  static async open(t: TestContext, path: string, url: string): Promise<Relay> {
    const relay = new Relay();
    relay.lead(url);
    const server = createServer((client) => relay.#pass(client));
    server.listen(path);
    await once(server, "listening");
    t.after(() => server.close());
    return relay;
  }

  #pass(client: Socket): void {
    client.on("error", () => client.destroy());
    if (this.#target === undefined) return void client.destroy();
    this.#open.add(client);
    const upstream = connect(this.#target);
    upstream.on("error", () => client.destroy()).on("close", () => client.destroy());
    client.on("close", () => {
      this.#open.delete(client);
      upstream.destroy();
    });
    client.pipe(upstream).pipe(client);
  }
}

/** Of the kubeconfig below. */
export const userOfNode = (nodeName: string): string => `system:coxswain-services:${nodeName}`;

/** The kubeconfig of a node's services, which reach the API server through the relay, with their own rights only. */
export const kubeconfigOfNode = (administrators: string, nodeName: string): string =>
  kubeconfigOf(administrators, userOfNode(nodeName), "system:coxswain-services");

/** The same of another user. */
export function kubeconfigOf(administrators: string, user: string, ...groups: string[]): string {
  const config = JSON.parse(administrators);
  config.clusters[0].cluster.server = `https://127.0.0.1:${apiPort}`;
  Object.assign(config.users[0].user, { as: user, ...(groups.length > 0 && { "as-groups": groups }) });
  return JSON.stringify(config);
}
