/** Many lines of text, of which only the visible ones are in the document; stays at the end while lines are added. */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useHeight } from "../parts/height.ts";

const lineHeight = 20;
const spare = 20;

interface LinesProps {
  readonly label: string;
  readonly lines: readonly string[];
  readonly draw: (line: string) => ComponentChildren;
  /** Keeps the end in sight until somebody scrolls away from it. */
  readonly isFollowed: boolean;
}

export function Lines({ label, lines, draw, isFollowed }: LinesProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [top, setTop] = useState(0);
  const height = useHeight(box, 400);
  useLayoutEffect(() => {
    const element = box.current!;
    if (isFollowed && isAtEnd.current) element.scrollTop = element.scrollHeight;
  });
  const first = Math.max(0, Math.floor(top / lineHeight) - spare);
  const last = Math.min(lines.length, Math.ceil((top + height) / lineHeight) + spare);
  return (
    <section
      ref={box}
      class="lines"
      aria-label={label}
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight >= scrollHeight - lineHeight;
        setTop(Math.floor(scrollTop / lineHeight) * lineHeight);
      }}
    >
      <pre style={{ height: `${lines.length * lineHeight}px` }}>
        {lines.slice(first, last).map((line, i) => (
          <div key={first + i} class="line" style={{ transform: `translateY(${(first + i) * lineHeight}px)` }}>
            {draw(line)}
          </div>
        ))}
      </pre>
    </section>
  );
}
