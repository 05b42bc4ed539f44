import type { HeapProfiler, Profiler, Runtime } from "node:inspector";
import { gzipSync } from "node:zlib";
import { Line, Location, Profile, Function as ProfileFunction, Sample, StringTable, ValueType } from "pprof-format";

/**
 * Converts a V8 CPU profile to gzipped profile.proto, the format of `go tool pprof`.
 * Source: github.com/google/pprof proto/profile.proto
 */
export function cpuProfile(profile: Profiler.Profile): Buffer {
  const parts = new Parts();
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const parentOf = new Map(
    profile.nodes.flatMap((node) => (node.children ?? []).map((child): [number, number] => [child, node.id])),
  );
  const microsOf = new Map<number, { count: number; micros: number }>();
  for (const [i, id] of (profile.samples ?? []).entries()) {
    const entry = microsOf.get(id) ?? { count: 0, micros: 0 };
    entry.count++;
    entry.micros += Math.max(profile.timeDeltas?.[i] ?? 0, 0);
    microsOf.set(id, entry);
  }
  const samples: Sample[] = [];
  for (const [id, { count, micros }] of microsOf) {
    const stack: number[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parentOf.get(at)) {
      const frame = byId.get(at)?.callFrame;
      if (frame !== undefined && frame.functionName !== "(root)") stack.push(parts.location(frame));
    }
    if (stack.length > 0) samples.push(new Sample({ locationId: stack, value: [count, micros * 1000] }));
  }
  return parts.encode(
    samples,
    [
      ["samples", "count"],
      ["cpu", "nanoseconds"],
    ],
    (profile.endTime - profile.startTime) * 1000,
  );
}

/** Fields that V8 sends but Node's types lack. */
type HeapNode = HeapProfiler.SamplingHeapProfileNode & { id?: number };
type HeapSamples = HeapProfiler.SamplingHeapProfile & { samples?: readonly { nodeId: number }[] };

/** Converts a V8 heap profile: memory allocated during sampling that is still in use. */
export function heapProfile(profile: HeapSamples): Buffer {
  const parts = new Parts();
  const samples: Sample[] = [];
  const countOf = new Map<number, number>();
  for (const { nodeId } of profile.samples ?? []) countOf.set(nodeId, (countOf.get(nodeId) ?? 0) + 1);
  const walk = (node: HeapNode, above: number[]): void => {
    const stack = node.callFrame.functionName === "(root)" ? above : [parts.location(node.callFrame), ...above];
    if (node.selfSize > 0 && stack.length > 0)
      samples.push(new Sample({ locationId: stack, value: [countOf.get(node.id ?? 0) ?? 0, node.selfSize] }));
    for (const child of node.children) walk(child, stack);
  };
  walk(profile.head, []);
  return parts.encode(
    samples,
    [
      ["inuse_objects", "count"],
      ["inuse_space", "bytes"],
    ],
    0,
  );
}

/** The string, function and location tables of a profile. */
class Parts {
  readonly #strings = new StringTable();
  readonly #functions = new Map<string, ProfileFunction>();
  readonly #locations = new Map<string, Location>();

  location(frame: Runtime.CallFrame): number {
    const key = `${frame.functionName}|${frame.url}|${frame.lineNumber}`;
    let location = this.#locations.get(key);
    if (location === undefined) {
      const line = new Line({ functionId: this.#function(frame), line: frame.lineNumber + 1 });
      location = new Location({ id: this.#locations.size + 1, line: [line] });
      this.#locations.set(key, location);
    }
    return Number(location.id);
  }

  #function(frame: Runtime.CallFrame): number {
    const key = `${frame.functionName}|${frame.url}`;
    let found = this.#functions.get(key);
    if (found === undefined) {
      const name = this.#strings.dedup(frame.functionName === "" ? "(anonymous)" : frame.functionName);
      found = new ProfileFunction({
        id: this.#functions.size + 1,
        name,
        systemName: name,
        filename: this.#strings.dedup(frame.url),
      });
      this.#functions.set(key, found);
    }
    return Number(found.id);
  }

  encode(sample: Sample[], types: [string, string][], durationNanos: number): Buffer {
    const typeOf = ([type, unit]: [string, string]): ValueType =>
      new ValueType({ type: this.#strings.dedup(type), unit: this.#strings.dedup(unit) });
    const profile = new Profile({
      sampleType: types.map(typeOf),
      sample,
      location: [...this.#locations.values()],
      function: [...this.#functions.values()],
      stringTable: this.#strings,
      timeNanos: BigInt(Date.now()) * 1_000_000n,
      durationNanos: Math.round(durationNanos),
    });
    return gzipSync(profile.encode());
  }
}
