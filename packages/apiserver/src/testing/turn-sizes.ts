/**
 * Sizes of the tests of long event-loop turns. A run takes 40 % of the values that a request can have, and allows a turn two
 * thirds of what the whole number may take; with COX_TEST_LONG it takes all. The limit of 100 ms has threefold slack for those.
 */
const isWhole = process.env["COX_TEST_LONG"] !== undefined;

export const sized = (values: number): number => (isWhole ? values : Math.round(values * 0.4));

export const longestTurnMs = isWhole ? 300 : 200;
