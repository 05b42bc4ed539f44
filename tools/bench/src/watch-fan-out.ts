import type { Connection } from "./http.ts";
import { noSamples, type Samples } from "./load.ts";
import type { Stage } from "./stage.ts";

/**
 * Changes one pod again and again, each time when all watchers have seen the last change. An operation is one event at
 * one watcher; its latency runs from the sending of the change.
 */
export async function watchFanOut(
  stage: Stage,
  { watchers, connections, seconds }: { watchers: number; connections: number; seconds: number },
): Promise<Samples> {
  const samples = noSamples();
  const pod = stage.podPath(0);
  const { metadata } = JSON.parse((await stage.connection.request(pod, { keepBody: true })).body.toString()) as {
    metadata: { name: string; resourceVersion: string };
  };
  const query = `?watch=1&resourceVersion=${metadata.resourceVersion}&fieldSelector=metadata.name%3D${metadata.name}`;
  const opened: Connection[] = [];
  let sentAt = 0;
  let missing = 0;
  let allSeen: () => void = () => {};
  const onData = (chunk: Buffer): void => {
    const now = performance.now();
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) {
      samples.latencies.push(now - sentAt);
      if (--missing === 0) allSeen();
    }
  };
  try {
    for (let index = 0; index < connections; index++) opened.push(await stage.target.connect());
    await Promise.all(
      Array.from({ length: watchers }, (_, index) =>
        (opened[index % connections] as Connection).stream(`${stage.namespacePath}/pods${query}`, onData),
      ),
    );
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
      const body = JSON.stringify({ metadata: { annotations: { "example.com/round": `${sentAt}` } } });
      const headers = { "content-type": "application/merge-patch+json" };
      await Promise.all([stage.connection.request(pod, { method: "PATCH", body, headers }), seen]);
    }
    samples.seconds = (performance.now() - start) / 1000;
  } finally {
    for (const connection of opened) connection.close();
  }
  samples.operations = samples.latencies.length;
  return samples;
}
