import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { writeImage } from "@coxswain/deploy/image";
import { unpackedPackage } from "../framework/debian.ts";
import { settings } from "../framework/kubectl.ts";
import { bootMachine, importImages, type Machine, whyNoMachine } from "./machine.ts";

/** Debian's Docker and docker-compose with their dependencies other than Python. */
const packages = [
  "docker.io",
  "tini",
  "libdevmapper1.02.1",
  "docker-compose",
  "python3-attr",
  "python3-distro",
  "python3-docker",
  "python3-dockerpty",
  "python3-docopt",
  "python3-dotenv",
  "python3-jsonschema",
  "python3-pyrsistent",
  "python3-texttable",
  "python3-websocket",
] as const;
const folders = packages.map((name) => `/opt/debian/${name}`);
/** Runs a program with those packages as if they were installed. */
const unpacked = "/opt/coxswain/unpacked";
const script = `#!/bin/sh
export PATH=${folders.flatMap((folder) => [`${folder}/usr/sbin`, `${folder}/usr/bin`]).join(":")}:/usr/sbin:/usr/bin:/sbin:/bin
export PYTHONPATH=${folders.map((folder) => `${folder}/usr/lib/python3/dist-packages`).join(":")}
export LD_LIBRARY_PATH=/opt/debian/libdevmapper1.02.1/lib/${process.arch === "x64" ? "x86_64" : "aarch64"}-linux-gnu
exec "$@"
`;

/** @returns the reason why Docker cannot run here; undefined when it can. */
export const whyNoCompose = (): string | undefined =>
  whyNoMachine() ?? (existsSync("/usr/lib/python3/dist-packages/yaml") ? undefined : "Debian's Python lacks YAML");

/** A machine with a real Docker, into which the image of a release is loaded; what is in the compose file does not run yet. */
export interface ComposeMachine {
  readonly machine: Machine;
  docker(...args: string[]): Promise<string>;
  /** docker-compose with the file of the release. @param env variables of the file, such as `SERVICES_ENABLE` */
  compose(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  /** With the kubeconfig that the file's service `certs` writes. */
  kubectl(...args: string[]): Promise<string>;
}

/** The kubeconfig that the service `certs` writes, in the machine. */
export const composeKubeconfig = "/opt/coxswain/compose/admin.conf";

/** @param prepare as of `bootMachine` */
export async function bootComposeMachine(prepare?: (release: string) => Promise<void>): Promise<ComposeMachine> {
  for (const name of packages) unpackedPackage(name);
  const machine = await bootMachine({
    units: ["containerd.service"],
    async prepare(release) {
      await writeImage(settings.root, release);
      writeFileSync(join(release, basename(unpacked)), script, { mode: 0o755 });
      await prepare?.(release);
    },
  });
  const docker = (...args: string[]) => machine.run(unpacked, "docker", ...args);
  try {
    // Debian's docker-init is a dangling link here.
    const flags = ["--oom-score-adjust=0", "--init-path=/opt/debian/tini/usr/bin/tini-static"];
    await machine.run("systemd-run", "--unit=docker", unpacked, "dockerd", ...flags);
    await waitFor(() => docker("version"), { timeoutMs: 180_000, retry: hasExitCode, what: "Docker to answer" });
    await docker("load", "--input", "/opt/coxswain/coxswain-image.tar");
    await importImages(machine);
  } catch (err) {
    await machine.kill();
    throw err;
  }
  return {
    machine,
    docker,
    compose: (args, env = {}) =>
      machine.run(
        "env",
        ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
        unpacked,
        "python3",
        "/opt/debian/docker-compose/usr/bin/docker-compose",
        "--project-name=cox",
        "--project-directory=/opt/coxswain/compose",
        "--file=/opt/coxswain/compose/compose.yaml",
        ...args,
      ),
    kubectl: (...args) => machine.kubectl(composeKubeconfig, ...args),
  };
}
