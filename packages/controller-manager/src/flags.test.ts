import assert from "node:assert/strict";
import { test } from "node:test";
import { undocumentedDefaults } from "@coxswain/apimachinery/testing/documented-flags";
import { kubeControllerManager } from "./flags.ts";

test("each flag has the default that upstream documents", () =>
  assert.deepEqual(undocumentedDefaults(kubeControllerManager), []));
