/** Who decodes in suite `decode`, and in which precisions. */
export const decoderNames = ['ours', 'recompute', 'ctranslate2', 'pytorch-cached'] as const;
export type DecoderName = (typeof decoderNames)[number];

export const precisions = ['float32', 'bfloat16', 'int8'] as const;
export type Precision = (typeof precisions)[number];
