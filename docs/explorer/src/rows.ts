/** Rows of a pane, of which only those in sight are elements: a stream may have many thousands, a value megabytes. */

import { element, reveal } from "./dom.js";

/** Rows that are made and removed together. */
const TOGETHER = 100;

export class Rows {
  private groups: HTMLElement[] = [];
  private count = 0;
  /** The height of a row, as the group that was made last has it; a guess before. */
  private height = 26;
  private readonly observer: IntersectionObserver;

  constructor(
    readonly pane: HTMLElement,
    private readonly row: (index: number) => HTMLElement,
  ) {
    this.observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) this.fill(target as HTMLElement);
        else this.empty(target as HTMLElement);
      }
    });
  }

  /** Show a number of rows; those at the top are elements at once. */
  show(count: number): void {
    this.observer.disconnect();
    this.count = count;
    this.groups = [];
    this.pane.replaceChildren();
    for (let start = 0; start < count; start += TOGETHER) {
      const height = this.height * Math.min(TOGETHER, count - start);
      const group = element("div", { role: "presentation", "data-start": start, style: `height: ${height}px` });
      this.groups.push(group);
      this.pane.append(group);
      if (start === 0) this.fill(group);
      this.observer.observe(group);
    }
  }

  /** Return the indexes of those rows from one to another that are elements. */
  made(first = 0, last = this.count - 1): number[] {
    const groups = this.groups.slice(Math.floor(first / TOGETHER), Math.floor(last / TOGETHER) + 1);
    const filled = groups.filter((group) => group.firstChild !== null);
    const rows = filled.flatMap((group) => Array.from(group.children, (_, at) => Number(group.dataset["start"]) + at));
    return rows.filter((index) => index >= first && index <= last);
  }

  /** Return the element of a row, if it is one. */
  get(index: number): HTMLElement | undefined {
    return this.groups[Math.floor(index / TOGETHER)]?.children[index % TOGETHER] as HTMLElement | undefined;
  }

  /** Return the element of a row after scrolling to it. */
  reveal(index: number): HTMLElement | undefined {
    const group = this.groups[Math.floor(index / TOGETHER)];
    if (group !== undefined) this.fill(group);
    const row = this.get(index);
    if (row !== undefined) reveal(this.pane, row);
    return row;
  }

  private fill(group: HTMLElement): void {
    if (group.firstChild !== null) return;
    const start = Number(group.dataset["start"]);
    for (let index = start; index < Math.min(start + TOGETHER, this.count); index++) group.append(this.row(index));
    group.style.height = "";
    const { height } = group.getBoundingClientRect();
    if (height > 0) this.height = height / group.childElementCount;
  }

  private empty(group: HTMLElement): void {
    if (group.firstChild === null || group === this.groups[0]) return;
    group.style.height = `${group.getBoundingClientRect().height}px`;
    group.replaceChildren();
  }
}
