// Defines what plain_extern.c declares.
dlm double before[100000], wide[3000][1000];
