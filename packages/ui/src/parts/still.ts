import { Component, type JSX } from "preact";

interface StillProps {
  /** Inputs of the rendering; it is rendered again when one of them differs by identity. */
  readonly on: readonly unknown[];
  readonly draw: () => JSX.Element;
}

/** Keeps the rendering of a part of a long list while the list is scrolled. */
export class Still extends Component<StillProps> {
  override shouldComponentUpdate({ on }: StillProps): boolean {
    return on.length !== this.props.on.length || on.some((one, i) => one !== this.props.on[i]);
  }

  override render(): JSX.Element {
    return this.props.draw();
  }
}
