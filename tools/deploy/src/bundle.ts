import { readFileSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { basename, dirname, join } from "node:path";
import { build, type Plugin } from "esbuild";
import { callSitesOf } from "./call-sites.ts";

export interface Bundle {
  /** By their names; all of them belong into one folder. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Folders of the foreign packages whose code is in the files, below the root, sorted. */
  readonly packages: readonly string[];
}

/** What can be run, by the name of its file; `*-thread` are workers, which the modules that start them look for beside themselves. */
const entryPoints = {
  "kube-apiserver": "packages/apiserver/src/main.ts",
  "kube-controller-manager": "packages/controller-manager/src/main.ts",
  "kube-scheduler": "packages/scheduler/src/main.ts",
  kubelet: "packages/node-agent/src/main.ts",
  certs: "tools/deploy/src/certs.ts",
  check: "tools/deploy/src/check.ts",
  "yaml-thread": "packages/apimachinery/src/codec/yaml-thread.ts",
  "recorded-object-thread": "packages/apiserver/src/audit/recorded-object-thread.ts",
};

/**
 * The daemons and all they import as a few files of JavaScript, which start in half the time of two thousand. What daemons share is
 * in files of its own. Equal sources give equal bytes, wherever the repository lies.
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
    // What CommonJS modules call for Node's own modules.
    banner: { js: 'import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);' },
    plugins: [placesOfCalls, protocolOfEtcd, namesOfLateImports],
  });
  const outputs = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  const files = new Map([...outputs].filter(([name]) => name.endsWith(".js")));
  const callSites = [...files].map(([name, code]) => [
    name,
    callSitesOf(Buffer.from(code).toString(), JSON.parse(Buffer.from(outputs.get(`${name}.map`) as Uint8Array).toString())),
  ]);
  files.set("call-sites.json", Buffer.from(JSON.stringify(Object.fromEntries(callSites))));
  files.set("package.json", Buffer.from('{ "type": "module" }\n'));
  return { files, packages: foreignPackages(Object.keys(metafile.inputs)) };
}

/** Lines of the log name the file and the line of the sources, and `--vmodule` asks for them: the bundle looks them up. */
const placesOfCalls: Plugin = {
  name: "places-of-calls",
  setup(on) {
    on.onLoad({ filter: /\/logging\/source-place\.ts$/ }, () => {
      const path = join(import.meta.dirname, "bundled-source-place.ts");
      return { contents: readFileSync(path), loader: "ts", resolveDir: import.meta.dirname };
    });
  },
};

const loadsProtocol = "(0, proto_loader_1.loadSync)(`${__dirname}/../proto/rpc.proto`,";

/** etcd3 reads its protocol from files when it is loaded; the bundle has it as data. */
const protocolOfEtcd: Plugin = {
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

/** With the protobufjs that reads it otherwise: the one of etcd3's own loader. */
function protocolAsJson(importer: string, file: string): unknown {
  const loader = createRequire(importer).resolve("@grpc/proto-loader");
  const protobuf = createRequire(loader)("protobufjs") as { loadSync(file: string): { toJSON(): unknown } };
  return protobuf.loadSync(file).toJSON();
}

/** `await import("etcd3")` gives the names of a CommonJS module in Node, but esbuild's would have nothing but `default`. */
const namesOfLateImports: Plugin = {
  name: "names-of-late-imports",
  setup(on) {
    on.onResolve({ filter: /^[^./]/ }, ({ kind, path, resolveDir }) => {
      if (kind !== "dynamic-import" || isBuiltin(path)) return undefined;
      return { path, namespace: "late", pluginData: { resolveDir } };
    });
    on.onLoad({ filter: /.*/, namespace: "late" }, ({ path, pluginData }) => {
      const { resolveDir } = pluginData as { resolveDir: string };
      const names = Object.keys(createRequire(join(resolveDir, "importer.js"))(path) as object);
      const exported = names.filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== "default");
      return { contents: `export { ${exported.join(", ")} } from ${JSON.stringify(path)};`, resolveDir };
    });
  },
};

function foreignPackages(inputs: readonly string[]): string[] {
  const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/@][^/]*(?=\/)/;
  return [...new Set(inputs.flatMap((path) => folder.exec(path)?.[0] ?? []))].sort();
}
