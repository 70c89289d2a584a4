"""What an estimate takes for granted where nothing has been measured, and why.

The peak of a GPU and the share of it that is reached stand in the configuration, under `hardware`.
"""

# Forward and backward pass, and forward pass alone, per parameter and token. Source: Kaplan et al.
# 2020, Scaling Laws for Neural Language Models, section 2.1.
OPERATIONS_TO_TRAIN = 6
OPERATIONS_TO_MEASURE = 2

# Bytes per second. With eight short strings a step, reading the weights takes longer than the
# products with them, and updating them longer still.
GPU_MEMORY_SPEED = 3e12  # an H100, whose data sheet has 3.35e12; an A100 of 80 GB has 2e12
LINK_SPEED = 50e9  # between GPUs of one machine that have no more than PCIe 5; NVLink is faster
HOST_SPEED = 20e9  # between a GPU and main memory, pinned, PCIe 4
DISK_SPEED = 1e9  # a checkpoint onto a local NVMe disk or a good network file system

# Bytes that AdamW reads and writes per parameter, the cast of the gradient and of the weights in.
UPDATE_BYTES = 40
# CPU threads of each process whose optimiser is offloaded; other processes wait for their GPU.
THREADS_OFFLOADED = 4
# Parameters per second and process of DeepSpeed's AdamW on the CPU, for two processes that share
# the speed of main memory: all cores of a large machine reach 4e9. Source: Ren et al. 2021,
# ZeRO-Offload, section 6.
CPU_UPDATES = 2e9

START_SECONDS = 90  # importing, starting the processes, compiling DeepSpeed's optimiser

# Twins, on one thread of a CPU, at half the speeds in docs/fleet.md, as not every processor is so
# fast: operations per second, and seconds per token and per step beyond these operations.
TWIN_SPEED = 50e9
TWIN_TOKEN_SECONDS = 4e-6
TWIN_STEP_SECONDS = {"fleet": 0.0, "deepspeed": 0.02}
TWIN_START_SECONDS = 30

# Jobs are asked for longer than they are expected to take: a queue kills what overruns, and what it
# killed has to start Python and load its model again.
TIME_SAFETY = 2.0
MEMORY_SAFETY = 1.25
