/** A list of which only the visible part is in the document. Arrow keys, j and k move; Enter opens. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<T> {
  readonly title: string;
  /** Also the name of the column's class. */
  readonly name: string;
  readonly cell: (item: T) => ComponentChildren;
  /** Makes the column sortable. */
  readonly compare?: (a: T, b: T) => number;
}

export interface RowsProps<T> {
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
  readonly sort?: string;
  readonly onSort?: (name: string) => void;
}

/** Rows beyond the visible ones, so that a flick does not show a gap. */
const spare = 8;

export function Rows<T>(props: RowsProps<T>): JSX.Element {
  const { label, items, keyOf, columns, rowHeight, onOpen, empty, openKey, sort, onSort } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [chosen, setChosen] = useState(0);

  useLayoutEffect(() => {
    const element = box.current as HTMLDivElement;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (chosen >= items.length) setChosen(Math.max(0, items.length - 1));
  }, [items.length, chosen]);

  // Whole steps of rows: scrolling within a row renders nothing.
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + spare);

  const choose = (index: number): void => {
    const next = Math.max(0, Math.min(items.length - 1, index));
    setChosen(next);
    const element = box.current as HTMLDivElement;
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

  const shown: JSX.Element[] = [];
  for (let i = first; i < last; i++) {
    const item = items[i] as T;
    const key = keyOf(item);
    const look = `row${i === chosen ? " chosen" : ""}${key === openKey ? " open" : ""}`;
    shown.push(
      <div
        key={i % (last - first)}
        id={idOf(i)}
        role="row"
        aria-rowindex={i + 2}
        aria-selected={i === chosen}
        class={look}
        style={{ transform: `translateY(${i * rowHeight}px)`, height: `${rowHeight}px` }}
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
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="rows"
      role="grid"
      aria-label={label}
      aria-rowcount={items.length + 1}
      aria-activedescendant={items.length > 0 && chosen >= first && chosen < last ? idOf(chosen) : undefined}
      tabIndex={0}
      onScroll={({ currentTarget }) => setTop(Math.floor(currentTarget.scrollTop / rowHeight) * rowHeight)}
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
