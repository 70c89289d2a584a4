"""The assumptions of estimates where nothing has been measured, and their reasons.

The peak of a GPU, the share of the peak that is reached, and the speed of its memory are in the
configuration, in the block `hardware`.
"""

# Operations per parameter and token: of a forward and a backward pass, and of a forward pass only.
# Source: Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1.
OPERATIONS_TO_TRAIN = 6
OPERATIONS_TO_ADAPT = 4  # of frozen weights: no gradients of the weights themselves
OPERATIONS_TO_MEASURE = 2

# Bytes per second.
LINK_SPEED = 50e9  # between GPUs of one machine that have no more than PCIe 5; NVLink is faster
HOST_SPEED = 20e9  # between a GPU and main memory, pinned, PCIe 4
DISK_SPEED = 1e9  # a checkpoint onto a local NVMe disk or a good network file system

# Bytes that AdamW reads and writes per parameter, with the casts of the gradient and the weights.
UPDATE_BYTES = 40
# Strings on which a run of leave-one-out is measured: the one that is left out, and its placebo.
MEASURED_WITHOUT_ONE = 2
# CPU threads of each process whose optimiser is offloaded; other processes wait for their GPU.
THREADS_OFFLOADED = 4
# From this number on, a model on a machine without GPUs trains faster with all cores than with one.
PARAMETERS_FOR_ALL_CORES = 20e6
# Parameters per second and process of DeepSpeed's AdamW on the CPU. All cores of a large machine
# reach 4e9; this is half of it, for two processes that share the main memory. Source: Ren et al.
# 2021, ZeRO-Offload, section 6.
CPU_UPDATES = 2e9

START_SECONDS = 90  # imports, start of the processes, compilation of DeepSpeed's optimiser

# Twins on one thread of a CPU: operations per second, and additional seconds per token and per
# step. The speeds are half of those in docs/fleet.md, because many processors are slower.
TWIN_SPEED = 50e9
TWIN_TOKEN_SECONDS = 4e-6
TWIN_STEP_SECONDS = {"fleet": 0.0, "deepspeed": 0.02}
TWIN_START_SECONDS = 30

# Jobs request more time than expected, because a queue kills a job that takes longer, and then the
# next attempt has to start Python and load its model again.
TIME_SAFETY = 2.0
MEMORY_SAFETY = 1.25
