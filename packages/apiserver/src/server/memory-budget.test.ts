import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { HeaderBlock } from "@coxswain/apimachinery/transport/http2/server/input";
import { newMemoryBudget } from "./memory-budget.ts";

test("the metrics show what each use keeps and may keep", async (t) => {
  const metrics = newMetricsRegistry();
  const budget = newMemoryBudget(metrics);
  budget.lists.keep({ sizeBytes: 1000, used: false, since: 0, drop() {} });
  const block = new HeaderBlock(1, 0, 2000, budget.headers, () => {});
  block.add(Buffer.alloc(1200));
  t.after(() => block.drop());
  const lines = (await metrics.render()).split("\n").filter((line) => line.startsWith("coxswain_"));
  assert.deepEqual(lines, [
    'coxswain_apiserver_cache_bytes{use="encodings"} 0',
    'coxswain_apiserver_cache_bytes{use="objects"} 0',
    'coxswain_apiserver_cache_bytes{use="lists"} 1000',
    'coxswain_apiserver_cache_bytes{use="histories"} 0',
    'coxswain_apiserver_cache_bytes{use="documents"} 0',
    'coxswain_apiserver_cache_bytes{use="fields"} 0',
    'coxswain_apiserver_cache_bytes{use="patterns"} 0',
    'coxswain_apiserver_cache_bytes{use="buffers"} 0',
    'coxswain_apiserver_cache_bytes{use="headers"} 1200',
    'coxswain_apiserver_cache_limit_bytes{use="encodings"} 134217728',
    'coxswain_apiserver_cache_limit_bytes{use="objects"} 16777216',
    'coxswain_apiserver_cache_limit_bytes{use="lists"} 67108864',
    'coxswain_apiserver_cache_limit_bytes{use="histories"} 134217728',
    'coxswain_apiserver_cache_limit_bytes{use="documents"} 67108864',
    'coxswain_apiserver_cache_limit_bytes{use="fields"} 2097152',
    'coxswain_apiserver_cache_limit_bytes{use="patterns"} 50331648',
    'coxswain_apiserver_cache_limit_bytes{use="buffers"} 16777216',
    'coxswain_apiserver_cache_limit_bytes{use="headers"} 67108864',
  ]);
});
