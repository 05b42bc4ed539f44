import { noSamples, type Samples } from "./load.ts";
import type { Stage } from "./stage.ts";
import type { WatchConnection } from "./watch-client.ts";

interface Watchers {
  readonly watchers: number;
  readonly connections: number;
  readonly seconds: number;
}

/**
 * Updates one pod repeatedly, each time after all watchers have received the previous update. An operation is one event at one
 * watcher; its latency is measured from sending the update.
 */
export async function watchFanOut(stage: Stage, { watchers, connections, seconds }: Watchers): Promise<Samples> {
  const samples = noSamples();
  let sentAt = 0;
  let missing = 0;
  let allSeen: () => void = () => {};
  const close = await openWatches(stage, { watchers, connections }, () => {
    samples.latencies.push(performance.now() - sentAt);
    if (--missing === 0) allSeen();
  });
  try {
    const start = performance.now();
    while (performance.now() - start < seconds * 1000) {
      missing = watchers;
      const seen = new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${missing} of ${watchers} watchers got no event in 10 s`)), 10_000);
        allSeen = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      sentAt = performance.now();
      await Promise.all([change(stage), seen]);
    }
    samples.seconds = (performance.now() - start) / 1000;
  } finally {
    close();
  }
  samples.operations = samples.latencies.length;
  return samples;
}

/** Like `watchFanOut` at a fixed rate, without waiting for events; events in flight at the end are not counted. */
export function watchPaced(stage: Stage, options: Watchers & { updatesPerSecond: number }): Promise<Samples> {
  return paced(
    options,
    (onEvent) => openWatches(stage, options, onEvent),
    () => change(stage),
  );
}

/**
 * @param open opens all watches and calls `onEvent` with the watcher's index for each event. @returns a function to close them
 * @param change triggers one event per watcher
 */
export async function paced(
  { watchers, seconds, updatesPerSecond }: { watchers: number; seconds: number; updatesPerSecond: number },
  open: (onEvent: (watcher: number) => void) => Promise<() => void>,
  change: () => Promise<unknown>,
): Promise<Samples> {
  const samples = noSamples();
  const sentAt: number[] = [];
  const seen = new Array<number>(watchers).fill(0);
  const close = await open((watcher) => {
    // Changes are sequential, so that each watcher receives the events in the order they were sent.
    const order = seen[watcher] ?? 0;
    seen[watcher] = order + 1;
    const sent = sentAt[order];
    if (sent !== undefined) samples.latencies.push(performance.now() - sent);
  });
  try {
    const start = performance.now();
    while (performance.now() - start < seconds * 1000) {
      const due = start + (sentAt.length * 1000) / updatesPerSecond - performance.now();
      if (due > 0) await new Promise((resolve) => setTimeout(resolve, due));
      sentAt.push(performance.now());
      await change();
    }
    samples.seconds = (performance.now() - start) / 1000;
  } finally {
    close();
  }
  samples.operations = samples.latencies.length;
  return samples;
}

/** @param onEvent called with the watcher's index for each event. @returns a function to close all watches */
async function openWatches(
  stage: Stage,
  { watchers, connections }: { watchers: number; connections: number },
  onEvent: (watcher: number) => void,
): Promise<() => void> {
  const { metadata } = JSON.parse((await stage.connection.request(stage.podPath(0), { keepBody: true })).body.toString()) as {
    metadata: { name: string; resourceVersion: string };
  }; // cast: a Pod of the API server
  const query = `?watch=1&resourceVersion=${metadata.resourceVersion}&fieldSelector=metadata.name%3D${metadata.name}`;
  const opened: WatchConnection[] = [];
  const close = (): void => {
    for (const connection of opened) connection.close();
  };
  try {
    for (let index = 0; index < connections; index++) opened.push(await stage.target.connectWatches());
    await Promise.all(
      Array.from({ length: watchers }, (_, watcher) =>
        opened[watcher % connections]!.watch(`${stage.namespacePath}/pods${query}`, () => onEvent(watcher)),
      ),
    );
  } catch (err) {
    close();
    throw err;
  }
  return close;
}

function change(stage: Stage): Promise<unknown> {
  const body = JSON.stringify({ metadata: { annotations: { "example.com/round": `${performance.now()}` } } });
  const headers = { "content-type": "application/merge-patch+json" };
  return stage.connection.request(stage.podPath(0), { method: "PATCH", body, headers });
}
