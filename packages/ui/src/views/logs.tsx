import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { segmentsOf } from "../model/ansi.ts";
import { LogStream } from "../model/log-stream.ts";
import { useApp } from "../parts/app.ts";
import { Lines } from "./lines.tsx";

interface LogViewProps {
  readonly namespace: string;
  readonly name: string;
}

interface PodContainers {
  readonly spec: {
    readonly containers: readonly { readonly name: string }[];
    readonly initContainers?: readonly { readonly name: string }[];
  };
}

export function LogView({ namespace, name }: LogViewProps): JSX.Element {
  const { api } = useApp();
  const [containers, setContainers] = useState<readonly string[]>([]);
  const [container, setContainer] = useState("");
  const [isPrevious, setPrevious] = useState(false);
  const [problem, setProblem] = useState("");
  const [, setTurn] = useState(0);
  const [stream, setStream] = useState<LogStream>();

  useEffect(() => {
    const stop = new AbortController();
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
    api.get<PodContainers>(path, stop.signal).then(
      ({ spec }) => {
        const names = [...spec.containers, ...(spec.initContainers ?? [])].map((one) => one.name);
        setContainers(names);
        setContainer(names[0] ?? "");
      },
      (err: unknown) => {
        if (!stop.signal.aborted) setProblem(err instanceof Error ? err.message : String(err));
      },
    );
    return () => stop.abort();
  }, [api, namespace, name]);

  useEffect(() => {
    if (container === "") return undefined;
    const changed = (): void => setTurn((turn) => turn + 1);
    const made = new LogStream({ namespace, pod: name, container, isPrevious, changed });
    setStream(made);
    void made.run(api);
    return () => made.stop();
  }, [api, namespace, name, container, isPrevious]);

  if (problem !== "") return <p class="note">{problem}</p>;
  return (
    <div class="logs">
      <div class="log-bar">
        <label>
          <span class="dim">Container</span>
          <select value={container} onChange={({ currentTarget }) => setContainer(currentTarget.value)}>
            {containers.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={isPrevious} onChange={({ currentTarget }) => setPrevious(currentTarget.checked)} />
          <span class="dim">before the last restart</span>
        </label>
      </div>
      <Lines
        label={`Log of ${container}`}
        lines={stream?.lines ?? []}
        isFollowed
        draw={(line) =>
          segmentsOf(line).map(({ text, look }, i) =>
            look === "" ? (
              text
            ) : (
              <span key={i} class={look}>
                {text}
              </span>
            ),
          )
        }
      />
      {stream !== undefined && stream.end !== "" && <p class="log-end dim">{stream.end}</p>}
    </div>
  );
}
