import { Session } from "node:inspector/promises";
import { type Clock, realClock } from "../process/clock/clock.ts";
import type { RootLogger } from "../process/logging/logger.ts";
import type { Exchange } from "./exchange.ts";
import { cpuProfile, heapProfile } from "./pprof-profile.ts";

export interface DebugPages {
  handles(path: string): boolean;
  /** @param path without the query; `handles` returns true for it */
  handle(exchange: Exchange, path: string): Promise<void>;
  /** Paths for the index at `/`. */
  readonly paths: readonly string[];
}

const text = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
/** Content type of /debug/flags. Source: k8s.io/apiserver pkg/server/routes/flags.go, writePlainText */
const bareText = { ...text, "content-type": "text/plain" };
const root = "/debug/pprof";
const longestSeconds = 300;

const profiles: readonly (readonly [name: string, description: string])[] = [
  ["allocs", "Memory allocated while it was sampled; ?seconds=N says how long"],
  ["cmdline", "The command line of this program"],
  ["goroutine", "What the event loop waits for"],
  ["heap", "The same as allocs, of what is still in use at the end"],
  ["profile", "CPU profile; ?seconds=N says how long. Read it with go tool pprof"],
  ["symbol", "For pprof: symbols are in the profiles"],
];

/**
 * /debug/pprof/ on top of Node's inspector, in the format of `go tool pprof`, and /debug/flags/v, which changes the log
 * verbosity. The caller has to authorize requests.
 * Source: k8s.io/apiserver pkg/server/routes/profiling.go, flags.go
 */
export function newDebugPages({ log, clock = realClock }: { log: RootLogger; clock?: Clock }): DebugPages {
  let busy = false;
  const sample = async (
    exchange: Exchange,
    defaultSeconds: number,
    take: (session: Session, ms: number) => Promise<Buffer>,
  ): Promise<void> => {
    const seconds = secondsOf(exchange, defaultSeconds);
    if (seconds === undefined) return exchange.respond(400, text, `seconds must be a number up to ${longestSeconds}\n`);
    if (busy) return exchange.respond(500, text, "Could not enable profiling: profiling already in use\n");
    busy = true;
    const session = new Session();
    session.connect();
    try {
      const bytes = await take(session, seconds * 1000);
      exchange.respond(
        200,
        { "content-type": "application/octet-stream", "content-disposition": 'attachment; filename="profile"' },
        bytes,
      );
    } finally {
      session.disconnect();
      busy = false;
    }
  };
  const cpu = async (session: Session, ms: number): Promise<Buffer> => {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await clock.sleep(ms);
    const { profile } = await session.post("Profiler.stop");
    return cpuProfile(profile);
  };
  const heap = async (session: Session, ms: number): Promise<Buffer> => {
    await session.post("HeapProfiler.startSampling", { samplingInterval: 32 * 1024 });
    await clock.sleep(ms);
    const { profile } = await session.post("HeapProfiler.stopSampling");
    return heapProfile(profile);
  };

  const answer = async (exchange: Exchange, page: string): Promise<void> => {
    switch (page) {
      case "":
        return exchange.respond(200, { "content-type": "text/html; charset=utf-8" }, indexPage());
      case "profile":
        return sample(exchange, 30, cpu);
      case "heap":
      case "allocs":
        return sample(exchange, 5, heap);
      case "goroutine":
        return exchange.respond(200, text, waitingFor());
      case "cmdline":
        return exchange.respond(200, text, process.argv.join("\0"));
      case "symbol":
        return exchange.respond(200, text, "num_symbols: 1\n");
      default:
        return exchange.respond(404, text, "Unknown profile\n");
    }
  };

  return {
    paths: ["/debug/flags/v", "/debug/pprof", "/debug/pprof/profile"],
    async handle(exchange, path) {
      if (path === "/debug/flags/v") return setVerbosity(exchange, log);
      if (path === root) return toIndex(exchange);
      return answer(exchange, path.slice(root.length + 1));
    },
    handles: (path) => path === "/debug/flags/v" || path === root || path.startsWith(`${root}/`),
  };
}

/** Redirects as net/http does, with an HTML link for GET. */
function toIndex(exchange: Exchange): Promise<void> | void {
  const headers = { location: `${root}/`, "content-type": "text/html; charset=utf-8" };
  exchange.respond(302, headers, exchange.method === "GET" ? `<a href="${root}/">Found</a>.\n\n` : "");
}

function secondsOf(exchange: Exchange, fallback: number): number | undefined {
  const requested = new URLSearchParams(exchange.url.split("?")[1] ?? "").get("seconds");
  if (requested === null) return fallback;
  const seconds = Number(requested);
  return seconds > 0 && seconds <= longestSeconds ? seconds : undefined;
}

function indexPage(): string {
  const rows = profiles.map(([name, description]) => `<tr><td><a href="${name}">${name}</a></td><td>${description}</td></tr>`);
  return `<html><head><title>/debug/pprof/</title></head><body><h1>/debug/pprof/</h1><table>${rows.join("")}</table></body></html>\n`;
}

/** Counts of active handles and requests, the closest equivalent of a goroutine list. */
function waitingFor(): string {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1);
  const lines = [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${count}\t${name}`);
  return `${lines.join("\n")}\n`;
}

async function setVerbosity(exchange: Exchange, log: RootLogger): Promise<void> {
  if (exchange.method !== "PUT") return exchange.respond(406, bareText, "unsupported http method\n");
  const verbosity = (await exchange.body(1024)).toString();
  if (!/^[0-9]{1,3}$/.test(verbosity)) {
    return exchange.respond(
      400,
      bareText,
      `failed set klog.logging.verbosity ${verbosity}: strconv.ParseInt: parsing ${JSON.stringify(verbosity)}: invalid syntax\n`,
    );
  }
  log.setVerbosity(Number(verbosity));
  exchange.respond(200, bareText, `successfully set klog.logging.verbosity to ${verbosity}\n`);
}
