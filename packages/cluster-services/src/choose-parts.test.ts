import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { chooseParts } from "./choose-parts.ts";
import type { PartDefinition } from "./part.ts";
import { parts } from "./parts.ts";

const part = (name: string, onByDefault = true): PartDefinition => ({
  name,
  runs: "node",
  onByDefault,
  rights: {},
  load: () => Promise.reject(new Error("not to be loaded")),
});
const table = [part("services"), part("dns"), part("ingress", false)];

for (const { name, enable = [], disable = [], want } of [
  { name: "those that are on by default", want: ["services", "dns"] },
  { name: "one that is enabled, in the order of the table", enable: ["ingress"], want: ["services", "dns", "ingress"] },
  { name: "all but a disabled one", disable: ["services"], want: ["dns"] },
  { name: "only those that are named, with *", enable: ["dns"], disable: ["*"], want: ["dns"] },
  { name: "none", disable: ["*"], want: [] },
]) {
  test(`chooses ${name}`, () => {
    assert.deepEqual(
      chooseParts(table, { enable, disable }).map((one) => one.name),
      want,
    );
  });
}

for (const { enable = [], disable = [], want } of [
  { enable: ["DNS"], want: '"DNS" is not in the list of known parts: services, dns, ingress' },
  { disable: ["proxy"], want: '"proxy" is not in the list of known parts: services, dns, ingress' },
  { enable: ["dns"], disable: ["dns"], want: "--enable and --disable both name dns" },
]) {
  test(`refuses: ${want}`, () => {
    assert.throws(() => chooseParts(table, { enable, disable }), new ConfigError(want));
  });
}

test("the program's parts: which are on by default, and which run on one node of the cluster only", () => {
  const names = (chosen: readonly PartDefinition[]): string => chosen.map(({ name }) => name).join(" ");
  assert.equal(
    names(chooseParts(parts, { enable: [], disable: [] })),
    "pod-network services dns metrics-api local-volumes load-balancers load-balancer-addresses",
  );
  assert.equal(names(parts.filter(({ onByDefault }) => !onByDefault)), "api-proxy ingress");
  assert.equal(names(parts.filter(({ runs }) => runs === "once")), "metrics-api load-balancers");
});
