import { Component, type JSX } from "preact";

interface StillProps {
  /** What the drawing depends on; it is drawn again when one of them is another. */
  readonly on: readonly unknown[];
  readonly draw: () => JSX.Element;
}

/** A part of a long list that is not drawn again because the list was scrolled. */
export class Still extends Component<StillProps> {
  override shouldComponentUpdate({ on }: StillProps): boolean {
    return on.length !== this.props.on.length || on.some((one, i) => one !== this.props.on[i]);
  }

  override render(): JSX.Element {
    return this.props.draw();
  }
}
