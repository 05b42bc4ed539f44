import assert from "node:assert/strict";
import { test } from "node:test";
import { check, importsOf } from "./check.ts";
import { orderedModules } from "./rules.ts";

for (const { name, path, target, want } of [
  {
    name: "a daemon may import apimachinery",
    path: "packages/scheduler/src/main.ts",
    target: "@coxswain/apimachinery/objects/meta/types",
    want: 0,
  },
  {
    name: "a daemon may not import another",
    path: "packages/scheduler/src/main.ts",
    target: "@coxswain/apiserver/server",
    want: 1,
  },
  {
    name: "apimachinery imports no daemon",
    path: "packages/apimachinery/src/client/client.ts",
    target: "@coxswain/apiserver/server",
    want: 1,
  },
  {
    name: "a module may import one before it",
    path: "packages/apimachinery/src/client/client.ts",
    target: "../objects/meta/types.ts",
    want: 0,
  },
  {
    name: "a module may not import one after it",
    path: "packages/apimachinery/src/objects/meta/types.ts",
    target: "../../client/client.ts",
    want: 1,
  },
  {
    name: "a module may import a table of its package",
    path: "packages/apimachinery/src/client/metrics.ts",
    target: "../metrics.json",
    want: 0,
  },
  {
    name: "a module may not import a table of a module after it",
    path: "packages/apimachinery/src/objects/meta/types.ts",
    target: "../../flags/gates.json",
    want: 1,
  },
  {
    name: "modules of one group have an order too",
    path: "packages/apimachinery/src/objects/meta/types.ts",
    target: "../codec/json.ts",
    want: 1,
  },
  {
    name: "a file of a group that belongs to none of its modules",
    path: "packages/apimachinery/src/objects/other.ts",
    target: "./meta/types.ts",
    want: 1,
  },
  {
    name: "the node agent's volumes do not know what runs pods",
    path: "packages/node-agent/src/volumes/secret.ts",
    target: "../pods/pod-runner.ts",
    want: 1,
  },
  { name: "pods/ may import volumes/", path: "packages/node-agent/src/pods/x.ts", target: "../volumes/volume.ts", want: 0 },
  {
    name: "the scheduler's framework knows no plugin",
    path: "packages/scheduler/src/framework/status.ts",
    target: "../plugins/default-binder.ts",
    want: 1,
  },
  {
    name: "a controller does not know the catalogue",
    path: "packages/controller-manager/src/controllers/job/controller.ts",
    target: "../../catalogue.ts",
    want: 1,
  },
  { name: "a folder that is in no plan", path: "packages/scheduler/src/other/x.ts", target: "../cache/x.ts", want: 1 },
  {
    name: "handlers know no storage",
    path: "packages/apiserver/src/handlers/get.ts",
    target: "../storage/etcd/store.ts",
    want: 1,
  },
  {
    name: "handlers know the generic registry",
    path: "packages/apiserver/src/handlers/get.ts",
    target: "../registry/generic/store.ts",
    want: 0,
  },
  {
    name: "handlers know no resource",
    path: "packages/apiserver/src/handlers/get.ts",
    target: "../registry/core/pods/strategy.ts",
    want: 1,
  },
  {
    name: "no path leaves a package",
    path: "packages/apiserver/src/server.ts",
    target: "../../apimachinery/src/objects/meta/types.ts",
    want: 1,
  },
  { name: "a module may import its own files", path: "packages/scheduler/src/cache/a.ts", target: "./b.ts", want: 0 },
  {
    name: "a file with rules of its own follows these",
    path: "packages/apiserver/src/storage/open.ts",
    target: "../watch/x.ts",
    want: 0,
  },
  { name: "its folder does not", path: "packages/apiserver/src/storage/x.ts", target: "../watch/x.ts", want: 1 },
  { name: "a test may import what it wants", path: "packages/apiserver/src/storage/x.test.ts", target: "../watch/x.ts", want: 0 },
  { name: "a tool may import any package", path: "tools/x/src/x.ts", target: "@coxswain/apiserver/server", want: 0 },
  { name: "no program imports a test", path: "packages/apiserver/src/server.ts", target: "./server.test.ts", want: 1 },
]) {
  test(name, () => assert.equal(check([{ path, imports: [target] }]).length, want));
}

test("the modules of a group are adjacent, so that groups have an order too", () => {
  for (const [name, modules] of Object.entries(orderedModules)) {
    const groups = modules.map((module) => module.name.split("/")[0]);
    const runs = groups.filter((group, at) => group !== groups[at - 1]);
    assert.deepEqual([...new Set(runs)], runs, name);
  }
});

test("finds static, type-only, re-exported, side-effect and dynamic imports", () => {
  const text = `import a from "a";\nimport type { B } from "./b.ts";\nimport {\n  c,\n} from "c";\nexport { d } from "d";\nimport "e";\nconst f = await import("f");\n`;
  assert.deepEqual(importsOf(text), ["a", "./b.ts", "c", "d", "e", "f"]);
});
