import { execFileSync } from "node:child_process";
import { globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { coxswainVersion, kubernetesRelease } from "@coxswain/apimachinery/process/release";
import { type TarEntry, tar } from "@coxswain/images/tar";
import { billOfMaterials } from "./bill-of-materials.ts";
import { bundle } from "./bundle.ts";
import { withoutDeadLinks } from "./document-links.ts";
import { licencesOf } from "./licences.ts";
import { withFolders } from "./with-folders.ts";
import { withoutSymbols } from "./without-symbols.ts";

/** The programs of a release, which `bin` has links for. */
export const daemons = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "coxswain-services"] as const;

/** Architecture name of Go and Debian. */
const architecture = process.arch === "x64" ? "amd64" : process.arch;

const documents = [
  "LICENSE",
  "CHANGELOG.md",
  "docs/installing.md",
  "docs/compatibility.md",
  "docs/cluster-services.md",
  "docs/guide/several-machines.md",
  "docs/flags",
];

/**
 * All files of a release by archive path: `bin`, `lib`, Node as `libexec/node`, units, compose file, documents.
 * Reproducible for the same sources and Node.
 * @param root the repository
 */
export async function releaseFiles(root: string): Promise<TarEntry[]> {
  const { files, packages } = await bundle(root);
  const here = join(root, "tools", "deploy");
  const licence = (path: string, name: string, content: string): TarEntry => ({
    type: "file",
    path: join(path, name),
    content: Buffer.from(content),
  });
  const entries: TarEntry[] = [
    file("bin/coxswain", join(here, "bin", "coxswain"), 0o755),
    file("bin/kubectl-why", join(here, "bin", "kubectl-why"), 0o755),
    // The name under which kubectl finds "kubectl explain-why".
    { type: "symlink", path: "bin/kubectl-explain_why", target: "kubectl-why" },
    ...daemons.map((name): TarEntry => ({ type: "symlink", path: `bin/${name}`, target: "coxswain" })),
    // KUBEBUILDER_ASSETS of other languages' test suites: etcd is a store in memory there.
    ...["kube-apiserver", "etcd"].map(
      (name): TarEntry => ({ type: "symlink", path: `envtest/${name}`, target: "../bin/coxswain" }),
    ),
    file("envtest/kubectl", join(here, "bin", "envtest-kubectl"), 0o755),
    ...[...files].map(([name, code]): TarEntry => ({ type: "file", path: `lib/${name}`, content: Buffer.from(code) })),
    { type: "file", path: "libexec/node", content: withoutSymbols(readFileSync(process.execPath)), mode: 0o755 },
    ...copies(here, ["systemd/**", "compose/**"], ""),
    ...documents.flatMap((name) => copies(root, [name, `${name}/**`], "")),
    licence("", "VERSION", `Coxswain ${coxswainVersion}, Kubernetes ${kubernetesRelease.gitVersion}\n`),
    licence("", "sbom.cdx.json", billOfMaterials(root, packages)),
    licence("licences", "packages.txt", licencesOf(root, packages)),
    licence("licences", "node.txt", readFileSync(join(process.execPath, "..", "..", "LICENSE"), "utf8")),
  ];
  return linkedWithin(withFolders(entries.sort((a, b) => (a.path < b.path ? -1 : 1))));
}

/** Removes links from the documents to sources and tests, which are not in the archive. */
function linkedWithin(entries: readonly TarEntry[]): TarEntry[] {
  const paths = new Set(entries.map(({ path }) => path));
  return entries.map((entry) => {
    if (entry.type !== "file" || !entry.path.endsWith(".md")) return entry;
    const text = withoutDeadLinks(entry.content.toString(), entry.path, (path) => paths.has(path));
    return { ...entry, content: Buffer.from(text) };
  });
}

/** @returns the path of the archive, `<out>/coxswain-0.1.0-kubernetes-1.23-linux-amd64.tar.gz` */
export async function writeRelease(root: string, out: string): Promise<string> {
  const { major, minor } = kubernetesRelease;
  const name = `coxswain-${coxswainVersion}-kubernetes-${major}.${minor}-linux-${architecture}`;
  const entries = (await releaseFiles(root)).map((entry) => ({ ...entry, path: `${name}/${entry.path}` }));
  makeFolderSync(out);
  const archive = join(out, `${name}.tar.gz`);
  writeFileSync(archive, compressed(tar([{ type: "folder", path: name }, ...entries])));
  return archive;
}

/** By gzip(1), whose output is 3 % smaller than that of Node's zlib, and without a time stamp. */
const compressed = (content: Uint8Array): Buffer =>
  execFileSync("gzip", ["--best", "--no-name"], { input: content, maxBuffer: content.length });

/** Matching regular files with their modes. */
function copies(from: string, patterns: readonly string[], to: string): TarEntry[] {
  return globSync(patterns as string[], { cwd: from }) // cast: globSync does not change its argument
    .filter((path) => statSync(join(from, path)).isFile())
    .map((path) => file(join(to, path), join(from, path)));
}

function file(path: string, from: string, mode = 0o644): TarEntry {
  return { type: "file", path, content: readFileSync(from), mode };
}
