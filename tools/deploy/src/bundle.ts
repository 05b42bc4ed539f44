import { readFileSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { basename, dirname, join } from "node:path";
import { uiAssets } from "@coxswain/build-ui/assets";
import { build, type Plugin } from "esbuild";
import { callSitesOf } from "./call-sites.ts";

interface Bundle {
  /** By path below one folder. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Folders of bundled third-party packages below the root, sorted. */
  readonly packages: readonly string[];
}

/** Entry points by output file name; `*-thread` are workers, located relative to the module that starts them. */
const entryPoints = {
  "kube-apiserver": "packages/apiserver/src/main.ts",
  "kube-controller-manager": "packages/controller-manager/src/main.ts",
  "kube-scheduler": "packages/scheduler/src/main.ts",
  kubelet: "packages/node-agent/src/main.ts",
  "coxswain-services": "packages/cluster-services/src/main.ts",
  testing: "packages/testing/src/cli.ts",
  "memory-etcd": "packages/testing/src/etcd.ts",
  certs: "tools/deploy/src/certs.ts",
  check: "tools/deploy/src/check.ts",
  doctor: "tools/deploy/src/doctor.ts",
  machines: "tools/deploy/src/machines.ts",
  "certificate-thread": "packages/apimachinery/src/serving/certificate-thread.ts",
  "yaml-thread": "packages/apimachinery/src/objects/codec/yaml-thread.ts",
  "recorded-object-thread": "packages/apiserver/src/audit/recorded-object-thread.ts",
};

/**
 * Bundles the programs and their imports into a few JavaScript files, which halves the start time. Shared code is in separate
 * chunks. Reproducible, independent of the location of the repository.
 * @param root the repository
 */
export async function bundle(root: string): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints,
    outdir: "out",
    write: false,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node26",
    conditions: ["cox-source"],
    sourcemap: "external",
    sourcesContent: false,
    metafile: true,
    legalComments: "none",
    logLevel: "error",
    // Bundled CommonJS modules call require() for Node's built-in modules.
    banner: { js: 'import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);' },
    plugins: [replacedModules, protocolOfEtcd, namesOfLateImports],
  });
  const outputs = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  const files = new Map([...outputs].filter(([name]) => name.endsWith(".js")));
  const callSites = [...files].map(([name, code]) => [
    name,
    callSitesOf(Buffer.from(code).toString(), JSON.parse(Buffer.from(outputs.get(`${name}.map`)!).toString())),
  ]);
  files.set("call-sites.json", Buffer.from(JSON.stringify(Object.fromEntries(callSites))));
  files.set("package.json", Buffer.from('{ "type": "module" }\n'));
  const ui = await uiAssets(root);
  for (const [name, content] of ui.files) files.set(`ui/${name}`, content);
  return { files, packages: foreignPackages([...Object.keys(metafile.inputs), ...ui.inputs]) };
}

/** Modules whose bundled variant is in this folder: log lines and `--vmodule` refer to source files; the page's files are elsewhere. */
export const replacedModules: Plugin = {
  name: "replaced-modules",
  setup(on) {
    on.onLoad({ filter: /\/(?:logging\/source-place|apiserver\/src\/ui\/assets-folder)\.ts$/ }, ({ path }) => {
      const variant = join(import.meta.dirname, `bundled-${basename(path)}`);
      return { contents: readFileSync(variant, "utf8"), loader: "ts", resolveDir: import.meta.dirname };
    });
  },
};

const loadsProtocol = "(0, proto_loader_1.loadSync)(`${__dirname}/../proto/rpc.proto`,";

/** etcd3 loads its .proto files at startup; the bundle embeds the parsed protocol. */
export const protocolOfEtcd: Plugin = {
  name: "protocol-of-etcd",
  setup(on) {
    on.onLoad({ filter: /\/etcd3\/lib\/connection-pool\.js$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      if (!text.includes(loadsProtocol)) throw new Error(`${path} loads its protocol in a way that is not known here`);
      const protocol = JSON.stringify(protocolAsJson(path, join(dirname(path), "..", "proto", "rpc.proto")));
      return { contents: text.replace(loadsProtocol, () => `(0, proto_loader_1.fromJSON)(${protocol},`), loader: "js" };
    });
  },
};

/** Uses the protobufjs of etcd3's own @grpc/proto-loader, so that versions match. */
function protocolAsJson(importer: string, file: string): unknown {
  const loader = createRequire(importer).resolve("@grpc/proto-loader");
  const protobuf = createRequire(loader)("protobufjs") as { loadSync(file: string): { toJSON(): unknown } }; // cast: loaded by path, without its types
  return protobuf.loadSync(file).toJSON();
}

/** `await import("etcd3")` yields named exports of a CommonJS module in Node; esbuild's output would only have `default`. */
export const namesOfLateImports: Plugin = {
  name: "names-of-late-imports",
  setup(on) {
    on.onResolve({ filter: /^[^./]/ }, ({ kind, path, resolveDir }) => {
      if (kind !== "dynamic-import" || isBuiltin(path)) return undefined;
      return { path, namespace: "late", pluginData: { resolveDir } };
    });
    on.onLoad({ filter: /.*/, namespace: "late" }, ({ path, pluginData }) => {
      const { resolveDir } = pluginData as { resolveDir: string }; // cast: set by the plugin itself
      const names = Object.keys(createRequire(join(resolveDir, "importer.js"))(path) as object); // cast: modules are objects
      const exported = names.filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== "default");
      return { contents: `export { ${exported.join(", ")} } from ${JSON.stringify(path)};`, resolveDir };
    });
  },
};

/** Folders of the third-party packages among the inputs of a bundle. */
export function foreignPackages(inputs: readonly string[]): string[] {
  const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/@][^/]*(?=\/)/;
  return [...new Set(inputs.flatMap((path) => folder.exec(path)?.[0] ?? []))].sort();
}
