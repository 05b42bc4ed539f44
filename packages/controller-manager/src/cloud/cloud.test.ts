import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { catalogue } from "../catalogue.ts";
import { completeConfig } from "../config.ts";
import { kubeControllerManager } from "../flags.ts";
import { newTestContext } from "../testing/test-context.ts";
import { cloudControllers } from "./without-cloud.ts";

const complete = (...argv: string[]) => completeConfig(parseFlags(kubeControllerManager.flags, argv).values);
const allocating = ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"];

const skipped: { name: string; flags?: string[]; text: string }[] = [
  {
    name: "service",
    text: "Failed to start service controller: WARNING: no cloud provider provided, services of type LoadBalancer will fail",
  },
  {
    name: "route",
    text: "Will not configure cloud provider routes for allocate-node-cidrs: false, configure-cloud-routes: true.",
  },
  {
    name: "route",
    flags: [...allocating, "--configure-cloud-routes=false"],
    text: "Will not configure cloud provider routes for allocate-node-cidrs: true, configure-cloud-routes: false.",
  },
  {
    name: "route",
    flags: allocating,
    text: "configure-cloud-routes is set, but no cloud provider specified. Will not configure cloud provider routes.",
  },
  { name: "cloud-node-lifecycle", text: "failed to start cloud node lifecycle controller: no cloud provider provided" },
];
for (const { name, flags = [], text } of skipped) {
  test(`without a cloud provider ${name} ${flags.join(" ")} says why it is skipped`, (t) => {
    const lines: string[] = [];
    const log = newLogger({ write: (line) => void lines.push(line) });
    const { ctx } = newTestContext(t);
    const entry = catalogue.find((known) => known.name === name);
    assert.equal(entry?.make({ ...ctx, log, config: complete(...flags) }), undefined);
    assert.equal(lines.length, 1);
    assert.ok(lines.join("").includes(text), lines.join(""));
  });
}

test("with an external cloud provider its controllers are another program's", () => {
  const own = (...flags: string[]) => cloudControllers.filter((name) => complete(...flags).controllers.has(name));
  assert.deepEqual(own(), cloudControllers);
  assert.deepEqual(own("--cloud-provider=external"), []);
});

for (const flags of [["--cloud-provider=aws"], ["--cloud-provider=external", "--external-cloud-volume-plugin=aws"]]) {
  test(`refuses ${flags.join(" ")}: no provider is built in`, () => {
    assert.throws(() => complete(...flags), /cloud provider could not be initialized: unknown cloud provider "aws"/);
  });
}
