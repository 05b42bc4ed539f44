import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aNodePod } from "../testing/builders.ts";
import { ContainerStarter } from "./container-starter.ts";
import type { PodRunnerOptions } from "./pod-runner-options.ts";

test("pull secrets that are missing or cannot be read are skipped, those behind them are used; only the latter are logged", async () => {
  const warnings: string[] = [];
  const secret = async (namespace: string, name: string) => {
    if (name === "missing") throw notFound(secrets, name);
    if (name === "refused") throw forbidden(secrets, name, "no");
    return { metadata: { namespace, name } };
  };
  const log = {
    ...discardLogger,
    warn: (text: string, fields: object = {}) => void warnings.push(`${text} ${JSON.stringify(fields)}`),
  };
  const starter = new ContainerStarter({ objects: { secret }, log } as unknown as PodRunnerOptions, () =>
    assert.fail("not needed"),
  );
  const names = ["missing", "first", "refused", "", "second"];
  const found = await starter.pullSecretsOf(aNodePod({ imagePullSecrets: names.map((name) => ({ name })) }));
  assert.deepEqual(
    found.map(({ metadata }) => metadata.name),
    ["first", "second"],
  );
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /refused/);
});
