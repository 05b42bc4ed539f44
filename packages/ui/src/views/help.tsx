import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

const shortcuts: readonly (readonly [keys: string, what: string])[] = [
  ["/", "search"],
  ["1 … 5", "cluster, workloads, pods, events, not well"],
  ["j k ↓ ↑", "next, previous"],
  ["Enter", "open"],
  ["Esc", "close"],
  ["w l e y", "overview, logs, events, JSON of the open object"],
  ["t", "dark or light"],
  ["?", "this list"],
];

const words: readonly (readonly [word: string, what: string])[] = [
  ["web 5d", "both words occur in name, namespace, status, node or image"],
  ["ns:team-a", "of this namespace"],
  ["node:n1", "pods on this node"],
  ["kind:job", "of this kind"],
  ["is:bad", "not well; good, moving, idle, or a status"],
];

export function Help({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">Keyboard</h2>
      <dl>
        {shortcuts.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h2>Search</h2>
      <dl>
        {words.map(([word, what]) => (
          <div key={word}>
            <dt>
              <code>{word}</code>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit" class="primary">
          Close
        </button>
      </form>
    </dialog>
  );
}
