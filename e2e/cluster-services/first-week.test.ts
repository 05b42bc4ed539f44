import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { withFolders } from "@coxswain/deploy/with-folders";
import { fetchTool, findKubectl } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { readSettings } from "@coxswain/dev-cluster/read-settings";
import { imageArchive } from "@coxswain/images/oci";
import type { TarEntry } from "@coxswain/images/tar";
import { cox, elsewhere } from "../cox/run-cox.ts";
import { bootComposeMachine, composeKubeconfig, whyNoCompose } from "../deploy/compose-machine.ts";
import { bootMachine, importImages, type Machine, whyNoMachine } from "../deploy/machine.ts";
import { settings } from "../framework/kubectl.ts";

const name = "first-week";
const folder = mkdtempSync(join(tmpdir(), "cox-first-week-"));
const page = join(settings.root, "docs", "guide", "first-week.md");
const postgres = globSync("/usr/lib/postgresql/*/bin").at(-1);
const why =
  process.env["COX_TEST_LONG"] === undefined
    ? "long: only with ./cox test --long"
    : process.getuid?.() !== 0
      ? "needs root"
      : postgres === undefined
        ? "Debian's postgresql is not installed"
        : undefined;

/** Title and commands of each section. */
const sections = readFileSync(page, "utf8")
  .split(/^## /m)
  .slice(1)
  .map((text) => ({
    title: text.slice(0, text.indexOf("\n")),
    commands: [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = ""]) => commands).join(""),
  }));

/** What a section's commands must print. */
const wanted: Readonly<Record<string, readonly RegExp[]>> = {
  "A cluster": [/ Ready /, /^storageclass\S+local \(default\)/m, /^ingressclass\S+coxswain +services\.coxswain\/ingress/m],
  "An image of your own": [],
  "A chart": [/^STATUS: deployed$/m, /^web +coxswain +web\.test +\d+\.\d+\.\d+\.\d+ +80 /m, /^it works$/m],
  Names: [/^Name:\s+web\.default\.svc\.cluster\.local$/m, /^it works$/m],
  TLS: [/^secret\/web-tls created$/m, /^it works$/m],
  "A database": [/^data-db-0 +Bound +pvc-\S+ .* local /m, /^42$/m],
  "From outside": [/^it works\nservice\/web-outside exposed\nit works$/m],
  Load: [/^\S+ +\d+m +\d+% +\d+Mi +\d+%/m, /^db-0 +\d+m +\d+Mi/m, /^horizontalpodautoscaler\S+ condition met$/m],
  "The end": [/^release "web" uninstalled$/m, /persistentvolumeclaim "data-db-0" deleted/],
};

/** Where the commands run. */
interface Form {
  readonly name: string;
  readonly skip: string | undefined;
  start(): Promise<void>;
  /** @returns what the commands print @throws Error with all of it when one fails */
  shell(commands: string): Promise<string>;
  end(): Promise<void>;
}

/** As on the page. */
const checkout: Form = {
  name: "./cox up",
  skip: undefined,
  start: async () => {},
  shell(commands) {
    const config = kubeconfigFile(readSettings(settings.root, elsewhere, name), "admin");
    const own = commands
      .replaceAll(/^\.\/cox (up|down|load)/gm, `"${settings.root}/cox" $1 --name ${name}`)
      .replace("$PWD/.cox/admin.conf", config);
    return bash(own, { KUBECONFIG: config });
  },
  end: async () => void (await cox(["down", "--name", name, "--purge"], elsewhere)),
};

interface MachineOptions {
  readonly name: string;
  readonly skip: string | undefined;
  readonly node: string;
  /** The administrator's, in the machine. */
  readonly kubeconfig: string;
  /**
   * Boots a machine, on which no cluster needs to run yet.
   * @param addImages adds the page's images to what becomes /opt/coxswain
   * @returns `up` starts the cluster as installing.md says, with Ingresses
   */
  boot(addImages: (release: string) => Promise<void>): Promise<{ readonly machine: Machine; up(): Promise<void> }>;
}

/** A machine of its own: instead of what `./cox` does on the page, what installing.md says is done. */
class OnMachine implements Form {
  readonly name: string;
  readonly skip: string | undefined;
  readonly #options: MachineOptions;
  #machine: Machine | undefined;

  constructor(options: MachineOptions) {
    this.#options = options;
    this.name = options.name;
    this.skip = options.skip;
  }

  async start(): Promise<void> {
    const { node, kubeconfig, boot } = this.#options;
    const { machine, up } = await boot(async (release) => {
      for (const image of images) copyFileSync(join(folder, image), join(release, "images", image));
    });
    this.#machine = machine;
    await up();
    for (const image of images) await machine.run("ctr", "-n", "k8s.io", "images", "import", `/opt/coxswain/images/${image}`);
    const kubectl = (...args: string[]) => machine.kubectl(kubeconfig, ...args);
    for (const args of [
      ["get", "ingressclass", "coxswain"],
      ["get", "storageclass", "local"],
      ["get", "serviceaccount", "default"],
      ["get", "node", node],
    ])
      await waitFor(() => kubectl(...args), { timeoutMs: 180_000, retry: hasExitCode, what: args.join(" ") });
    await kubectl("wait", "--for=condition=Ready", `node/${node}`, "--timeout=180s");
  }

  shell(commands: string): Promise<string> {
    const machine = this.#machine as Machine;
    const own = commands.replaceAll(/^(?:\.\/cox|export) .*\n/gm, "");
    return bash(own, { KUBECONFIG: machine.path(this.#options.kubeconfig) }, machine.inNetwork);
  }

  async end(): Promise<void> {
    await this.#machine?.kill();
  }
}

const archive = new OnMachine({
  name: "the archive with its units",
  skip: whyNoMachine(),
  node: "machine",
  kubeconfig: "/etc/kubernetes/admin.conf",
  async boot(addImages) {
    const daemons = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "coxswain-services"];
    const units = ["etcd", "containerd", ...daemons].map((unit) => `${unit}.service`);
    const machine = await bootMachine({ units, prepare: addImages });
    const applyRights = ["--apply-rights", "--enable=ingress", "--kubeconfig=/etc/kubernetes/admin.conf"];
    return {
      machine,
      async up() {
        await machine.write(
          "/etc/kubernetes/coxswain-services.env",
          "COXSWAIN_SERVICES_ARGS=--node-name=machine --enable=ingress\n",
        );
        await machine.run("systemctl", "restart", "coxswain-services");
        await waitFor(() => machine.run("coxswain-services", ...applyRights), {
          timeoutMs: 180_000,
          retry: hasExitCode,
          what: "the API server",
        });
        await importImages(machine);
      },
    };
  },
});

const compose = new OnMachine({
  name: "the compose file",
  skip: whyNoCompose(),
  node: "coxswain",
  kubeconfig: composeKubeconfig,
  async boot(addImages) {
    const { machine, compose } = await bootComposeMachine(addImages);
    return { machine, up: async () => void (await compose(["up", "--detach"], { SERVICES_ENABLE: "ingress" })) };
  },
});

const images = ["web.tar", "postgres.tar"];

describe("the first week, as the guide says", { skip: why }, () => {
  before(async () => {
    symlinkSync(await findKubectl(settings), join(folder, "kubectl"));
    symlinkSync(await fetchTool(settings, "helm", "1.23"), join(folder, "helm"));
    writeFileSync(join(folder, "web.tar"), imageArchive(webImage()));
    writeFileSync(join(folder, "postgres.tar"), imageArchive(postgresImage(postgres as string)));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test("each section of the page has its checks", () => {
    assert.deepEqual(
      sections.map(({ title }) => title),
      Object.keys(wanted),
    );
  });

  for (const form of [archive, compose, checkout])
    describe(form.name, { skip: form.skip }, () => {
      before(() => form.start());
      after(() => form.end());
      for (const { title, commands } of sections)
        test(title, async () => {
          if (title === "A chart") rmSync(join(folder, "web"), { recursive: true, force: true }); // of the form before
          const output = await form.shell(commands);
          for (const line of wanted[title] ?? []) assert.match(output, line);
        });
    });
});

/** @param inside a program with arguments that runs the shell, such as in a network namespace */
function bash(commands: string, variables: NodeJS.ProcessEnv, inside: readonly string[] = []): Promise<string> {
  const env = { ...elsewhere, ...variables, PATH: `${folder}:${process.env["PATH"]}`, HOME: folder };
  // Debian's bash reads its rc file when its input is a socket, as with execFile, and that file does not expect -u.
  const [program = "", ...args] = [...inside, "bash", "--norc", "-euo", "pipefail", "-c", commands];
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd: folder, env, timeout: 600_000, maxBuffer: 16 << 20 }, (err, stdout, stderr) => {
      if (err === null) resolve(stdout);
      else reject(new Error(`${err.message}\n${stdout}\n${stderr}`));
    });
  });
}

const busybox = execFileSync("sh", ["-c", "command -v busybox"], { encoding: "utf8" }).trim();
const program = (path: string, from: string): TarEntry => ({ type: "file", path, content: readFileSync(from), mode: 0o755 });

function webImage() {
  const layer: TarEntry[] = [
    { type: "folder", path: "bin" },
    program("bin/busybox", busybox),
    { type: "folder", path: "www" },
    { type: "file", path: "www/index.html", content: Buffer.from("it works\n") },
  ];
  return { names: ["docker.io/library/web:1"], layer, entrypoint: ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/www"] };
}

/** Debian's PostgreSQL of this machine with the libraries that it loads, and a shell that makes the data on the first start. */
function postgresImage(bin: string) {
  const programs = ["initdb", "postgres", "psql"].map((one) => join(bin, one));
  const version = /\/(\d+)\/bin$/.exec(bin)?.[1] ?? "";
  const modules = ["plpgsql.so", "dict_snowball.so"].map((one) => join(bin, "..", "lib", one));
  const share = `/usr/share/postgresql/${version}`;
  const shared = globSync(`${share}/**`, { withFileTypes: true })
    .filter((one) => one.isFile() && !one.parentPath.includes("/man"))
    .map((one) => join(one.parentPath, one.name));
  const libraries = new Set([...programs, ...modules].flatMap(librariesOf));
  const files = [...programs, ...modules, ...shared, ...libraries];
  const start = `[ -e /data/pg/PG_VERSION ] || initdb -D /data/pg -U postgres --auth=trust --locale=C -E UTF8
echo 'host all all all trust' >>/data/pg/pg_hba.conf
exec postgres -D /data/pg -c listen_addresses='*' -c unix_socket_directories=/tmp`;
  const applets = ["sh", "cat", "rm", "ls"];
  const entries: TarEntry[] = [
    ...files.map((path) => program(path.slice(1), path)),
    program("bin/busybox", busybox),
    ...applets.map((one): TarEntry => ({ type: "symlink", path: `bin/${one}`, target: "busybox" })),
    { type: "file", path: "etc/passwd", content: Buffer.from("root:x:0:0::/:/bin/sh\npostgres:x:999:999::/data:/bin/sh\n") },
    { type: "file", path: "etc/group", content: Buffer.from("root:x:0:\npostgres:x:999:\n") },
    { type: "folder", path: "tmp", mode: 0o1777 },
  ];
  const layer = withFolders(entries.sort((a, b) => (a.path < b.path ? -1 : 1)));
  return {
    names: ["docker.io/library/postgres:15"],
    layer,
    entrypoint: ["/bin/sh", "-c", start],
    env: [`PATH=${bin}:/bin`],
  };
}

function librariesOf(path: string): string[] {
  if (!existsSync(path)) throw new Error(`there is no ${path}`);
  const listed = execFileSync("ldd", [path], { encoding: "utf8" });
  return [...listed.matchAll(/(?:=>\s+|^\s*)(\/\S+) \(0x/gm)].map(([, library = ""]) => library);
}
