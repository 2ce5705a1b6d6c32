/** Records that are read at a time. */
export const PAGE_SIZE = 25;
