import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startCsiDriver, type TestDriver } from "../testing/csi-driver.ts";
import { countPlugins } from "./plugin-metrics.ts";
import { type PluginHandler, PluginRegistry } from "./plugin-registry.ts";

/** A registry with a handler that records its calls, and plugins that tests start and stop. */
async function bench(t: TestContext, more: Partial<PluginHandler> = {}) {
  const dir = await mkdtemp(join(tmpdir(), "cox-plugins-"));
  const registryDir = join(dir, "registry");
  const clock = newFakeClock();
  const seen: string[] = [];
  const handler: PluginHandler = {
    validate: (name, _, versions) => void seen.push(`validate ${name} ${versions}`),
    register: (name, endpoint) => void seen.push(`register ${name} ${endpoint.slice(dir.length + 1)}`),
    deregister: (name) => void seen.push(`deregister ${name}`),
    ...more,
  };
  /** Log lines of finished registrations. */
  const ends: string[] = [];
  const log = newLogger({ write: (line) => /Registered plugin|cannot be registered/.test(line) && ends.push(line) });
  const registry = (handlers: Record<string, PluginHandler> = { CSIPlugin: handler }) =>
    new PluginRegistry({ dir: registryDir, handlers, clock, log });
  const running: TestDriver[] = [];
  t.after(async () => {
    for (const plugin of running) await plugin.stop();
    await rm(dir, { recursive: true, force: true });
  });
  return {
    registryDir,
    registry,
    clock,
    seen,
    /** Resolves when a registration has ended, whether or not it succeeded. */
    ended: () => waitFor(() => ends.splice(0).length > 0, { what: "the registration to end" }),
    /** The next registration result that a plugin receives; resolves after the registration has finished. */
    reported: (plugins: PluginRegistry, plugin: TestDriver) =>
      waitFor(
        async () => {
          await plugins.reconcile();
          await waitFor(() => ends.splice(0).length > 0, { what: "the registration to end" });
          // The registration has a real timeout of one second, which may be exceeded on a loaded machine: retry.
          if (plugin.verdicts.length === 0) await clock.advance(longestRetryMs);
          return plugin.verdicts.at(-1);
        },
        { what: "the plugin to be notified" },
      ),
    async plugin(name: string, tellsEndpoint = true, folder = registryDir): Promise<TestDriver> {
      const plugin = await startCsiDriver({ name, registryDir: folder, dir: join(dir, name), tellsEndpoint });
      running.push(plugin);
      return plugin;
    },
  };
}

const longestRetryMs = 122_001;

test("a plugin is queried for its identity, registered by its type's handler, notified, and removed when its socket is gone", async (t) => {
  const { registry, seen, plugin, registryDir, reported } = await bench(t);
  await mkdir(join(registryDir, "below"), { recursive: true });
  await writeFile(join(registryDir, "no-socket"), "");
  const plugins = registry();
  const disk = await plugin("disk.example.com");
  assert.deepEqual(await reported(plugins, disk), { pluginRegistered: true, error: "" });
  assert.deepEqual(seen.splice(0), ["validate disk.example.com 1.0.0", "register disk.example.com disk.example.com/csi.sock"]);
  await plugins.reconcile();
  await settle();
  assert.deepEqual(seen, [], "once is enough");
  await disk.stop();
  await plugins.reconcile();
  assert.deepEqual(seen.splice(0), ["deregister disk.example.com"]);
  const again = await plugin("disk.example.com");
  assert.deepEqual(await reported(plugins, again), { pluginRegistered: true, error: "" });
  const deep = await plugin("deep.example.com", false, join(registryDir, "below"));
  assert.deepEqual(await reported(plugins, deep), { pluginRegistered: true, error: "" });
  assert.equal(seen.at(-1), "register deep.example.com registry/below/deep.example.com-reg.sock");
  await deep.stop();
  await plugins.reconcile();
  assert.equal(seen.at(-1), "deregister deep.example.com");
});

test("a plugin that names no endpoint is called at its registration socket", async (t) => {
  const { registry, seen, plugin, reported } = await bench(t);
  await reported(registry(), await plugin("disk.example.com", false));
  assert.equal(seen.at(-1), "register disk.example.com registry/disk.example.com-reg.sock");
});

test("a folder of plugins that cannot be read is an error, and loses no plugin", async (t) => {
  const { registry, seen, plugin, registryDir, reported } = await bench(t);
  const plugins = registry();
  await reported(plugins, await plugin("disk.example.com"));
  seen.length = 0;
  await rename(registryDir, `${registryDir}.away`);
  await writeFile(registryDir, "");
  await assert.rejects(plugins.reconcile(), { code: "ENOTDIR" });
  assert.deepEqual(seen, []);
  await rm(registryDir);
  await rename(`${registryDir}.away`, registryDir);
});

test("a plugin that is refused is queried again after twice as long each time, at most after 122 seconds", async (t) => {
  const { registry, plugin, clock, ended } = await bench(t);
  const plugins = registry({});
  const disk = await plugin("disk.example.com");
  await plugins.reconcile();
  await ended();
  for (const waitMs of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000]) {
    await clock.advance(waitMs - 1);
    await plugins.reconcile();
    await settle();
    const before = disk.verdicts.length;
    await clock.advance(1);
    await plugins.reconcile();
    await ended();
    assert.ok(disk.verdicts.length <= before + 1, `${waitMs} ms`);
  }
});

test("hidden sockets are ignored; a plugin that does not answer within a second is given up, and queried again", async (t) => {
  const { registryDir, registry, clock, ended } = await bench(t);
  await mkdir(join(registryDir, ".hidden"), { recursive: true });
  const connections: Socket[] = [];
  const servers = await Promise.all(
    [".s", ".hidden/s", "silent"].map(async (name) => {
      const server = createServer((socket) => void connections.push(socket.on("error", () => undefined)));
      await new Promise<void>((resolve) => server.listen(join(registryDir, name), resolve));
      return server;
    }),
  );
  t.after(() => {
    for (const connection of connections) connection.destroy();
    for (const server of servers) server.close();
  });
  const plugins = registry();
  const begun = performance.now();
  await plugins.reconcile();
  assert.deepEqual(plugins.sockets(), { present: [join(registryDir, "silent")], registered: [] });
  await plugins.reconcile();
  await ended();
  await settle();
  assert.equal(connections.length, 1, "it is not queried twice at a time");
  const tookMs = performance.now() - begun;
  assert.ok(tookMs >= 990 && tookMs < 8_000, `${tookMs} ms`);
  await clock.advance(499);
  await plugins.reconcile();
  await settle();
  assert.equal(connections.length, 1, "it has half a second");
  await clock.advance(1);
  await plugins.reconcile();
  await waitFor(() => connections.length === 2, { what: "another query" });
  await ended();
});

test("no connection to a plugin stays open after its registration, whether it succeeded or was refused", async (t) => {
  const { registry, plugin, reported } = await bench(t);
  const disk = await plugin("disk.example.com");
  const open = () => process.getActiveResourcesInfo().filter((kind) => kind === "PipeWrap").length;
  const before = open();
  assert.equal((await reported(registry(), disk))?.pluginRegistered, true);
  assert.equal((await reported(registry({}), disk))?.pluginRegistered, false);
  await waitFor(() => open() <= before, { what: "the connections to be closed" });
});

test("metrics count plugins with a socket, and registered ones, until they are removed", async (t) => {
  const { registry, plugin, registryDir, reported } = await bench(t);
  const plugins = registry();
  const metrics = newMetricsRegistry();
  countPlugins(metrics, plugins);
  const counted = async (): Promise<string[]> =>
    (await metrics.render())
      .split("\n")
      .filter((line) => line.startsWith("plugin_manager_total_plugins{"))
      .map((line) => line.replaceAll(`${registryDir}/`, "").replaceAll("-reg.sock", ""))
      .sort();
  const disk = await plugin("disk.example.com");
  await reported(plugins, disk);
  const tape = await plugin("tape.example.com");
  await reported(plugins, tape);
  const series = (name: string) =>
    ["actual", "desired"].map(
      (state) => `plugin_manager_total_plugins{socket_path="${name}.example.com",state="${state}_state_of_world"} 1`,
    );
  assert.deepEqual(await counted(), [...series("disk"), ...series("tape")]);
  await disk.stop();
  await plugins.reconcile();
  assert.deepEqual(await counted(), series("tape"));
});

test("a plugin that restarted is deregistered and registered again", async (t) => {
  const { registry, seen, plugin, reported } = await bench(t);
  const plugins = registry();
  const first = await plugin("disk.example.com");
  await reported(plugins, first);
  await first.stop();
  const second = await plugin("disk.example.com");
  seen.splice(0);
  await plugins.reconcile();
  assert.deepEqual(seen, ["deregister disk.example.com"]);
  await reported(plugins, second);
  assert.deepEqual(
    seen.map((line) => line.split(" ")[0]),
    ["deregister", "validate", "register"],
  );
});

for (const { name, handlers, want } of [
  {
    name: "of an unknown type",
    handlers: () => ({}),
    want: /^RegisterPlugin error -- no handler registered for plugin type: CSIPlugin at socket \//,
  },
  {
    name: "that its handler does not like",
    handlers: (handler: PluginHandler) => ({ CSIPlugin: { ...handler, validate: () => Promise.reject(new Error("too old")) } }),
    want: /^RegisterPlugin error -- plugin validation failed with err: too old$/,
  },
  {
    name: "that cannot be taken in",
    handlers: (handler: PluginHandler) => ({ CSIPlugin: { ...handler, register: () => Promise.reject(new Error("no id")) } }),
    want: /^RegisterPlugin error -- plugin registration failed with err: no id$/,
  },
]) {
  test(`a plugin ${name} is notified of the reason, and queried again later`, async (t) => {
    const { registry, plugin, clock, reported } = await bench(t);
    const handler: PluginHandler = { validate: () => undefined, register: () => undefined, deregister: () => undefined };
    const plugins = registry(handlers(handler));
    const disk = await plugin("disk.example.com");
    const verdict = await reported(plugins, disk);
    assert.equal(verdict.pluginRegistered, false);
    assert.match(verdict.error, want);
    await plugins.reconcile();
    await settle();
    assert.equal(disk.verdicts.length, 1, "it waits");
    await waitFor(
      async () => {
        await clock.advance(501);
        await plugins.reconcile();
        return disk.verdicts.length === 2;
      },
      { what: "the second try" },
    );
  });
}

test("a plugin that exits during its registration is deregistered, and registered when it is back", async (t) => {
  const running: TestDriver[] = [];
  const seen: string[] = [];
  const { registry, plugin, reported, ended } = await bench(t, {
    validate: () => undefined,
    async register(name) {
      seen.push(`register ${name}`);
      await running.shift()?.stop();
    },
    deregister: (name) => void seen.push(`deregister ${name}`),
  });
  const plugins = registry();
  running.push(await plugin("disk.example.com"));
  await plugins.reconcile();
  await ended();
  assert.deepEqual(seen.splice(0), ["register disk.example.com", "deregister disk.example.com"]);
  const again = await plugin("disk.example.com");
  assert.deepEqual(await reported(plugins, again), { pluginRegistered: true, error: "" });
  assert.deepEqual([...new Set(seen)], ["register disk.example.com"]);
});

test("a plugin whose deregistration fails does not prevent other plugins from being deregistered or registered", async (t) => {
  const gone: string[] = [];
  const { registry, plugin, reported } = await bench(t, {
    deregister(name) {
      gone.push(name);
      throw new Error("no");
    },
  });
  const plugins = registry();
  const drivers: TestDriver[] = [];
  for (const name of ["a.example.com", "b.example.com"]) {
    const driver = await plugin(name);
    await reported(plugins, driver);
    drivers.push(driver);
  }
  for (const driver of drivers) await driver.stop();
  const next = await plugin("c.example.com");
  assert.deepEqual(await reported(plugins, next), { pluginRegistered: true, error: "" });
  assert.deepEqual(gone.toSorted(), ["a.example.com", "b.example.com"]);
});

test("a plugin that replaces a refused one is queried without the refused one's delay", async (t) => {
  let isRefused = true;
  const validate = (): void => {
    if (isRefused) throw new Error("not you");
  };
  const b = await bench(t, { validate });
  const plugins = b.registry();
  const first = await b.plugin("a");
  assert.equal((await b.reported(plugins, first))?.pluginRegistered, false);
  await first.stop();
  isRefused = false;
  const second = await b.plugin("a");
  assert.equal((await b.reported(plugins, second))?.pluginRegistered, true);
});
