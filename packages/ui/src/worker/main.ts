/** The worker: runs the watches, keeps the objects out of the page's memory, and sends it the changed rows. */
import { Api } from "../api.ts";
import { kinds } from "../model/kinds.ts";
import type { FromWorker, Start } from "../model/protocol.ts";
import { Outbox } from "./outbox.ts";
import { ResourceWatch } from "./resource-watch.ts";
import { Rows } from "./rows.ts";
import { followUsage } from "./usage.ts";

/**
 * Watched over HTTP/1.1 too. Browsers open at most six connections to such a server, and some must remain for the page's own
 * requests.
 */
const alwaysWatched = new Set(["pods", "nodes", "deployments.apps"]);

const post = (message: FromWorker): void => self.postMessage(message);

self.onmessage = ({ data }: MessageEvent<Start>): void => {
  const outbox = new Outbox(post);
  const api = new Api(data.token);
  const stop = new AbortController();
  const refused = (message: string): void => {
    if (stop.signal.aborted) return;
    stop.abort();
    outbox.send({ type: "refused", message });
  };
  let podRows: Rows | undefined;
  for (const kind of kinds) {
    const rows = new Rows(kind, outbox);
    if (kind.resource === "pods") podRows = rows;
    const watch = new ResourceWatch({
      api,
      kind,
      rows,
      namespace: data.namespace,
      isWatched: data.isMultiplexed || alwaysWatched.has(kind.resource),
      report: (source) => outbox.send({ type: "source", resource: kind.resource, source }),
      refused,
    });
    void watch.run(stop.signal);
  }
  const podCount = (): number => podRows?.size ?? 0;
  void followUsage(api, (message) => outbox.send(message), podCount, stop.signal);
};
