/** A list of which only the visible part is in the document. Arrow keys, j and k move; Enter opens. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useHeight } from "./height.ts";
import { Still } from "./still.ts";

export interface Column<T> {
  readonly title: string;
  /** Also the name of the column's class. */
  readonly name: string;
  readonly cell: (item: T) => ComponentChildren;
  /** Makes the column sortable. */
  readonly compare?: (a: T, b: T) => number;
}

interface RowsProps<T> {
  readonly label: string;
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  readonly columns: readonly Column<T>[];
  readonly rowHeight: number;
  readonly onOpen: (item: T) => void;
  /** Shown in place of an empty list. */
  readonly empty: string;
  /** Key of the item that is open beside the list. */
  readonly openKey?: string | undefined;
  /** Values that cells depend on besides their item: rows are drawn again only when one of them or the item changes. Default: always. */
  readonly alsoOn?: readonly unknown[];
  readonly sort?: string;
  readonly onSort?: (name: string) => void;
}

/** Rows beyond the visible ones, so that a flick does not show a gap. */
const spare = 8;
/** After a jump of more than a screen, as when the bar is dragged, they follow when the list stands still. */
const settledMs = 100;

export function Rows<T>(props: RowsProps<T>): JSX.Element {
  const { label, items, keyOf, columns, rowHeight, onOpen, empty, openKey, alsoOn = [{}], sort, onSort } = props;
  const box = useRef<HTMLDivElement>(null);
  const [{ top, isJump }, setPlace] = useState({ top: 0, isJump: false });
  const height = useHeight(box, 600);
  const [chosen, setChosen] = useState(0);

  useEffect(() => {
    if (chosen >= items.length) setChosen(Math.max(0, items.length - 1));
  }, [items.length, chosen]);

  useEffect(() => {
    if (!isJump) return;
    const timer = setTimeout(() => setPlace({ top, isJump: false }), settledMs);
    return () => clearTimeout(timer);
  }, [top, isJump]);
  const scrolled = (to: number): void => {
    // Whole steps of rows: scrolling within a row renders nothing.
    const next = Math.floor(to / rowHeight) * rowHeight;
    if (next !== top) setPlace({ top: next, isJump: Math.abs(next - top) > height });
  };
  const beyond = isJump ? 1 : spare;
  const first = Math.max(0, Math.floor(top / rowHeight) - beyond);
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + beyond);
  /** An element that left on one side is used again on the other. */
  const elements = Math.ceil(height / rowHeight) + 2 * spare + 1;

  const choose = (index: number): void => {
    const next = Math.max(0, Math.min(items.length - 1, index));
    setChosen(next);
    const element = box.current!;
    const head = headHeight;
    if (next * rowHeight < element.scrollTop) element.scrollTop = next * rowHeight;
    const end = (next + 1) * rowHeight + head - element.clientHeight;
    if (end > element.scrollTop) element.scrollTop = end;
  };
  const page = Math.max(1, Math.floor(height / rowHeight) - 2);
  const moves: Readonly<Record<string, number>> = {
    ArrowDown: chosen + 1,
    j: chosen + 1,
    ArrowUp: chosen - 1,
    k: chosen - 1,
    PageDown: chosen + page,
    PageUp: chosen - page,
    Home: 0,
    End: items.length - 1,
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = moves[event.key];
    const item = items[chosen];
    if (to !== undefined) choose(to);
    else if (event.key === "Enter" && item !== undefined) onOpen(item);
    else return;
    event.preventDefault();
  };
  const idOf = (index: number): string => `row-${index}`;

  const rowOf = (i: number): JSX.Element => {
    const item = items[i]!;
    const isChosen = i === chosen;
    const isOpen = keyOf(item) === openKey;
    const draw = (): JSX.Element => (
      <div
        id={idOf(i)}
        role="row"
        aria-rowindex={i + 2}
        aria-selected={isChosen}
        class={`row${isChosen ? " chosen" : ""}${isOpen ? " open" : ""}`}
        style={{ top: `${i * rowHeight}px`, height: `${rowHeight}px` }}
        onClick={() => {
          setChosen(i);
          onOpen(item);
        }}
      >
        {columns.map(({ name, cell }) => (
          <div key={name} role="gridcell" class={`cell ${name}`}>
            {cell(item)}
          </div>
        ))}
      </div>
    );
    return <Still key={i % elements} on={[i, item, isChosen, isOpen, columns, rowHeight, ...alsoOn]} draw={draw} />;
  };
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, i) => rowOf(first + i));
  return (
    <div
      ref={box}
      class="rows"
      role="grid"
      aria-label={label}
      aria-rowcount={items.length + 1}
      aria-activedescendant={items.length > 0 && chosen >= first && chosen < last ? idOf(chosen) : undefined}
      tabIndex={0}
      onScroll={({ currentTarget }) => scrolled(currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div class="row head" role="row" aria-rowindex={1}>
        {columns.map(({ name, title, compare }) => (
          <div key={name} role="columnheader" class={`cell ${name}`} aria-sort={sort === name ? "ascending" : "none"}>
            {compare === undefined || onSort === undefined ? (
              title
            ) : (
              <button type="button" class="sort" onClick={() => onSort(name)}>
                {title}
                {sort === name && <span aria-hidden="true"> ↓</span>}
              </button>
            )}
          </div>
        ))}
      </div>
      <div class="body" role="rowgroup" style={{ height: `${items.length * rowHeight}px` }}>
        {shown}
      </div>
      {items.length === 0 && <p class="empty">{empty}</p>}
    </div>
  );
}

const headHeight = 34;
