/** A list of which only the visible part is in the document. Arrow keys, j and k move; Enter opens. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useHeight } from "./height.ts";
import { Still } from "./still.ts";
import { indexAfterKey, topShowing, visibleRows } from "./visible-rows.ts";

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
const headHeight = 34;

export function Rows<T>(props: RowsProps<T>): JSX.Element {
  const { label, items, keyOf, columns, rowHeight, onOpen, empty, openKey, alsoOn = [{}], sort, onSort } = props;
  const box = useRef<HTMLDivElement>(null);
  const height = useHeight(box, 600);
  const { top, isJump, scrolled } = useScrolling(rowHeight, height);
  const [chosen, setChosen] = useState(0);

  useEffect(() => {
    if (chosen >= items.length) setChosen(Math.max(0, items.length - 1));
  }, [items.length, chosen]);

  const { first, last } = visibleRows({ top, height, rowHeight }, items.length, isJump ? 1 : spare);
  /** An element that left on one side is used again on the other. */
  const elements = Math.ceil(height / rowHeight) + 2 * spare + 1;
  const page = Math.max(1, Math.floor(height / rowHeight) - 2);

  const choose = (index: number): void => {
    setChosen(index);
    const element = box.current!;
    const to = topShowing(index, { top: element.scrollTop, height: element.clientHeight, rowHeight }, headHeight);
    if (to !== element.scrollTop) element.scrollTop = to;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = indexAfterKey(event.key, chosen, { count: items.length, page });
    const item = items[chosen];
    if (to !== undefined) choose(to);
    else if (event.key === "Enter" && item !== undefined) onOpen(item);
    else return;
    event.preventDefault();
  };
  const rowOf = (i: number): JSX.Element => {
    const item = items[i]!;
    const isChosen = i === chosen;
    const isOpen = keyOf(item) === openKey;
    const onClick = (): void => {
      setChosen(i);
      onOpen(item);
    };
    const draw = (): JSX.Element => drawRow({ index: i, item, isChosen, isOpen, columns, rowHeight, onClick });
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
      <Head columns={columns} sort={sort} onSort={onSort} />
      <div class="body" role="rowgroup" style={{ height: `${items.length * rowHeight}px` }}>
        {shown}
      </div>
      {items.length === 0 && <p class="empty">{empty}</p>}
    </div>
  );
}

/** Where the list is scrolled to, in whole steps of rows: scrolling within a row renders nothing. */
function useScrolling(rowHeight: number, height: number) {
  const [{ top, isJump }, setPlace] = useState({ top: 0, isJump: false });
  useEffect(() => {
    if (!isJump) return;
    const timer = setTimeout(() => setPlace({ top, isJump: false }), settledMs);
    return () => clearTimeout(timer);
  }, [top, isJump]);
  const scrolled = (to: number): void => {
    const next = Math.floor(to / rowHeight) * rowHeight;
    if (next !== top) setPlace({ top: next, isJump: Math.abs(next - top) > height });
  };
  return { top, isJump, scrolled };
}

const idOf = (index: number): string => `row-${index}`;

interface RowParts<T> extends Pick<RowsProps<T>, "columns" | "rowHeight"> {
  readonly index: number;
  readonly item: T;
  readonly isChosen: boolean;
  readonly isOpen: boolean;
  readonly onClick: () => void;
}

function drawRow<T>({ index, item, isChosen, isOpen, columns, rowHeight, onClick }: RowParts<T>): JSX.Element {
  return (
    <div
      id={idOf(index)}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      class={`row${isChosen ? " chosen" : ""}${isOpen ? " open" : ""}`}
      style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
      onClick={onClick}
    >
      {columns.map(({ name, cell }) => (
        <div key={name} role="gridcell" class={`cell ${name}`}>
          {cell(item)}
        </div>
      ))}
    </div>
  );
}

interface HeadProps<T> extends Pick<RowsProps<T>, "columns"> {
  readonly sort: string | undefined;
  readonly onSort: ((name: string) => void) | undefined;
}

function Head<T>({ columns, sort, onSort }: HeadProps<T>): JSX.Element {
  return (
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
  );
}
