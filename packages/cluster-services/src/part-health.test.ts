import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newPartHealth } from "./part-health.ts";

function setUp() {
  const clock = newFakeClock();
  const metrics = newMetricsRegistry();
  const health = newPartHealth({ clock, metrics });
  const running = async (): Promise<string | undefined> =>
    /^coxswain_services_part_running\{\S+\} (\d)$/m.exec(await metrics.render())?.[1];
  return { clock, health, running, shown: () => metrics.render() };
}

test("a part that starts is not healthy, one that runs is, and one that ended on purpose is not asked", async () => {
  const { health, running } = setUp();
  await health.check("dns");
  health.starting("dns");
  await assert.rejects(health.check("dns"), /^Error: the part is starting$/);
  assert.equal(await running(), "0");
  health.running("dns", {});
  await health.check("dns");
  assert.equal(await running(), "1");
  health.ended("dns");
  await health.check("dns");
  assert.equal(await running(), "0");
});

test("the failure of a start is told until the part runs", async () => {
  const { health, shown } = setUp();
  health.starting("dns");
  health.failed("dns", new Error("no port"));
  await assert.rejects(health.check("dns"), /no port/);
  health.starting("dns");
  await assert.rejects(health.check("dns"), /no port/, "also while it starts again");
  health.running("dns", {});
  await health.check("dns");
  assert.match(await shown(), /^coxswain_services_part_failures_total\{\S+\} 1$/m);
});

test("the failure of a part that ran is told until it has run for 10 s again", async () => {
  const { clock, health, running } = setUp();
  health.running("dns", {});
  health.failed("dns", new Error("lost"));
  assert.equal(await running(), "0");
  health.failed("dns", new Error("lost again"));
  health.starting("dns");
  health.running("dns", {});
  await clock.advance(9_999);
  await assert.rejects(health.check("dns"), /lost again/);
  await clock.advance(1);
  await health.check("dns");
});

test("a part's own check is waited for", async () => {
  const { health } = setUp();
  health.running("dns", { check: () => Promise.reject(new Error("not loaded")) });
  await assert.rejects(health.check("dns"), /^Error: not loaded$/);
});
